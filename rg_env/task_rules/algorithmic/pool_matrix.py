"""pool_matrix: a matrix pooled by maximum or average."""

from __future__ import annotations

from itertools import chain

from rg_env.task_rules.reading.grids import DECIMAL, grid_of
from rg_env.task_rules.reading.numbers import is_rounded
from rg_env.task_rules.rules import Entry, ItemCheck, LibraryScore, ScorerFix, TaskRules

SAME_SIZE = 0.1
"""The library's score of a matrix of the right size with other numbers in it."""

ASKED_DECIMALS = 2


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
        is_right = all(is_rounded(*pair, ASKED_DECIMALS) for pair in pairs)
    except ValueError:
        return SAME_SIZE
    return 1.0 if is_right else SAME_SIZE


def _without_cut_off_windows(entry: Entry) -> list[Entry]:
    """Return the entry without the windows that do not fit into the matrix."""
    metadata = entry["metadata"]
    height, width = (
        metadata[name] // metadata["pool_size"] for name in ("rows", "cols")
    )
    whole = [row[:width] for row in metadata["solution"][:height]]
    text = "\n".join(" ".join(str(round(x, 2)) for x in row) for row in whole)
    read = {"answer": text.strip(), "metadata": {**metadata, "solution": whole}}
    return [{**entry, **read}]


RULES = TaskRules(
    "pool_matrix",
    notation=grid_of(DECIMAL),
    fix=ScorerFix(
        scorer_sha256="b84c32177fc266accab2b9e87cac4fda950e7b9c44b3271f0e0366b68db187e2",
        fault="What follows a `#` is ignored, and numbers wrong by 1 % score 1.0.",
        score=_pooled,
    ),
    item_checks=(
        ItemCheck(
            "kernel is one cell, so that the output is the input",
            lambda entry: bool(entry["metadata"]["pool_size"] == 1),
            answer_stands=True,
        ),
    ),
    other_readings=_without_cut_off_windows,
)
