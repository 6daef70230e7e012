"""pool_matrix: a matrix pooled by maximum or average."""

from __future__ import annotations

from itertools import chain

from rg_env.task_rules.reading.grids import DECIMAL, grid_of
from rg_env.task_rules.rules import Entry, ItemCheck, LibraryScore, ScorerFix, TaskRules

SAME_SIZE = 0.1
"""The library's score of a matrix of the right size with other numbers in it."""

ASKED_DECIMALS = 2
FLOAT_ERROR = 1e-6


def _pooled(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a matrix that is correct to two decimals; nothing hides behind a `#`.

    A number with more decimals is correct to as many. A column may be written as a row.
    """
    value = 0.0 if "#" in answer else library(answer)
    if value < SAME_SIZE:
        return value
    right = entry["metadata"]["solution"]
    found = [row.split() for row in answer.split("\n") if row.strip()]
    if len(found) == 1 and {len(row) for row in right} == {1}:
        found = [[number] for number in found[0]]
    if [len(row) for row in found] != [len(row) for row in right]:
        return SAME_SIZE
    pairs = zip(chain(*found), chain(*right), strict=True)
    try:
        return 1.0 if all(_is_pooled(*pair) for pair in pairs) else SAME_SIZE
    except ValueError:
        return SAME_SIZE


def _is_pooled(written: str, right: float) -> bool:
    decimals = max(ASKED_DECIMALS, len(written.partition(".")[2]))
    return abs(float(written) - right) <= 0.5 * 10.0**-decimals + FLOAT_ERROR


RULES = TaskRules(
    "pool_matrix",
    notation=grid_of(DECIMAL),
    fix=ScorerFix(
        scorer_sha256="b84c32177fc266accab2b9e87cac4fda950e7b9c44b3271f0e0366b68db187e2",
        fault="What follows a `#` is ignored, and numbers wrong by 1 % score 1.0.",
        proof=lambda entry: f"{entry['answer']} # or 7",
        score=_pooled,
    ),
    item_checks=(
        ItemCheck(
            "kernel is one cell, so that the output is the input",
            lambda entry: bool(entry["metadata"]["pool_size"] == 1),
            answer_stands=True,
        ),
    ),
)
