"""Where the tests of reasoning-gym expect another score than is paid here.

Its own test-suite was read for every task whose scorer is corrected, and each score
that it expects was asked of the corrected scorer. All others are met; these are not,
each for a reason that is the fix's own.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class OtherScore:
    """One expectation that is not met.

    Attributes:
        task: The registered task.
        answer: What is answered, in words.
        expected: What the library's test expects, as it says it.
        paid: What the corrected scorer pays, in [0, 1].
        reason: Why, as one sentence.
    """

    task: str
    answer: str
    expected: str
    paid: float
    reason: str


OTHER_SCORES: tuple[OtherScore, ...] = (
    OtherScore(
        "futoshiki",
        "the right board with a sentence before and behind it",
        "between 0 and 0.9",
        0.0,
        "The board is read cell by cell; a line of words is no row of it.",
    ),
    OtherScore(
        "futoshiki",
        "the same with every 1 made a 2",
        "above 0.1",
        0.0,
        "As above.",
    ),
    OtherScore(
        "knights_knaves",
        "one of two roles right",
        "0.65",
        0.0,
        "A coin has half of them right, and all knights would earn more than half.",
    ),
    OtherScore(
        "number_sorting",
        "right order, -92.85 where the right answer has -92.8",
        "1.0",
        0.0,
        "Within 1 of each number is no copy of it; the items of this version show"
        " the numbers as they are to be returned.",
    ),
    OtherScore(
        "rush_hour",
        "`invalid`, or moves with a word behind them",
        "0.01",
        0.0,
        "What is no list of moves is not played, and so earns nothing.",
    ),
)
"""Ordered by task; one row for each expectation."""
