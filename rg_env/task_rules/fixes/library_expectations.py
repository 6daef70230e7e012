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
        ("basic_arithmetic",),
        "`7 + x` for 7, `move: H5` for H5",
        "above 0",
        "Beside the right answer may stand what can be no second one; the latter is"
        " right once it is normalized.",
    ),
    OtherScore(
        ("prime_factorization",),
        "nothing, or a text that is no answer to the task",
        "0.01",
        "What cannot be read, or is rejected by a guard, earns nothing.",
    ),
    OtherScore(
        ("number_sorting",),
        "right order, -92.85 where the right answer has -92.8",
        "1.0",
        "Within 1 of each number is no copy of it; the items of this version show"
        " the numbers as they are to be returned.",
    ),
    OtherScore(
        ("word_ladder",),
        "a ladder whose first step is no word",
        "above 0",
        "What follows a step that is no word is not looked at.",
    ),
    OtherScore(
        (
            "binary_matrix",
            "spiral_matrix",
            "string_insertion",
        ),
        "the right answer as a Python list",
        "a part",
        "It is right once it is normalized.",
    ),
    OtherScore(
        ("calendar_arithmetic",),
        "`It is Monday`",
        "a part",
        "It is right once it is normalized.",
    ),
    OtherScore(
        ("group_anagrams", "palindrome_partitioning"),
        "the right lists without the brackets around them",
        "nothing",
        "It is right once it is normalized.",
    ),
)
"""Ordered by task; a test of the library for each task."""
