"""Where the tests of reasoning-gym expect another score than is paid here.

Its own tests were run with the corrected scorers in place of its own, and each score
that they ask for was compared. A row here is what the failing ones fail at.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class OtherScore:
    """Expectations that are not met, for one reason.

    Attributes:
        tasks: The registered tasks.
        answer: What is answered, in words.
        expected: What the library's tests expect, as they say it.
        reason: Why 0 is paid, as one sentence.
    """

    tasks: tuple[str, ...]
    answer: str
    expected: str
    reason: str


OTHER_SCORES: tuple[OtherScore, ...] = (
    OtherScore(
        ("tsumego",),
        "`7 + x` for 7, `move: H5` for H5",
        "above 0",
        "Beside the right answer may stand what can be no second one; the latter is"
        " right once it is normalized.",
    ),
    OtherScore(
        ("countdown", "puzzle24", "rubiks_cube", "rush_hour"),
        "nothing, or a text that is no answer to the task",
        "0.01",
        "What cannot be read, or is rejected by a guard, earns nothing.",
    ),
    OtherScore(
        ("futoshiki",),
        "the right board in the midst of a sentence, and the same with every 1 made a"
        " 2",
        "above 0",
        "The board is read cell by cell; a line of words is no row of it.",
    ),
    OtherScore(
        ("knights_knaves",),
        "one of two roles right",
        "0.65",
        "A coin has half of them right, and all knights would earn more than half.",
    ),
    OtherScore(
        ("n_queens",),
        "the right answer as a Python list",
        "a part",
        "It is right once it is normalized.",
    ),
)
"""Ordered by task; a test of the library for each task."""
