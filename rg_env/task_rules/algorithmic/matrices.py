"""Rules of manipulate_matrix and pool_matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, permutations, product
from typing import Any

from rg_env.task_rules.one_rule import CONTAINMENT_FIX
from rg_env.task_rules.reading.lists import DECIMAL_CELL, grid_notation
from rg_env.task_rules.reading.numbers import is_rounded
from rg_env.task_rules.rules import Entry, ItemCheck, LibraryScore, ScorerFix, TaskRules

# -- manipulate_matrix -----------------------------------------------------------------


_OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "quarter turn": lambda matrix, of: [*zip(*matrix[::-1], strict=True)],
    "rows": lambda matrix, of: matrix[::-1],
    "columns": lambda matrix, of: [row[::-1] for row in matrix],
    "dmirror": lambda matrix, of: [*zip(*matrix, strict=True)],
    "cmirror": lambda matrix, of: [
        *zip(*[row[::-1] for row in matrix[::-1]], strict=True)
    ],
    "map": lambda matrix, of: [
        [of["to"] if x == of["from"] else x for x in row] for row in matrix
    ],
    "zero_divisible": lambda matrix, of: [
        [x if x % of["k"] else 0 for x in row] for row in matrix
    ],
    "crop": lambda matrix, of: [
        row[of["col_start"] - 1 : of["col_end"]]
        for row in matrix[of["row_start"] - 1 : of["row_end"]]
    ],
    "remove_every_nth_row": lambda matrix, of: [
        row for at, row in enumerate(matrix, 1) if at % of["n"]
    ],
    "remove_every_nth_col": lambda matrix, of: [
        [x for at, x in enumerate(row, 1) if at % of["n"]] for row in matrix
    ],
}
"""The library's operations; turns and mirrors are named by their effect."""


def _other_turns_and_mirrors(entry: Entry) -> Iterator[Entry]:
    """Yield the entry for each other meaning of turns and mirrors.

    Turns may go to the left, and a mirror may swap rows instead of columns.
    """
    for quarters, (h, v) in product((1, 3), permutations(("rows", "columns"))):
        matrix = entry["metadata"]["matrix"]
        for of in entry["metadata"]["operations"]:
            kind = {"hmirror": h, "vmirror": v}.get(of["transform"], of["transform"])
            times = 1
            if kind == "rotate":
                kind = "quarter turn"
                times = int(of["degrees"]) // 90 * quarters % 4
            for _ in range(times):
                matrix = _OPERATIONS[kind](matrix, of)
        yield {**entry, "answer": "\n".join(" ".join(map(str, row)) for row in matrix)}


MANIPULATE_MATRIX = TaskRules(
    "manipulate_matrix",
    fix=CONTAINMENT_FIX,
    other_interpretations=_other_turns_and_mirrors,
)


# -- pool_matrix -----------------------------------------------------------------------

ASKED_DECIMALS = 2


def _pooled(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a matrix that is correct to two decimals, or to as many as it is written.

    A column may be written as a row.
    """
    right = entry["metadata"]["solution"]
    rows = [row.split() for row in answer.split("\n") if row.strip()]
    if len(rows) == 1 and {len(row) for row in right} == {1}:
        rows = [[number] for number in rows[0]]
    if [len(row) for row in rows] != [len(row) for row in right]:
        return 0.0
    pairs = zip(chain(*rows), chain(*right), strict=True)
    try:
        return float(all(is_rounded(*pair, ASKED_DECIMALS) for pair in pairs))
    except ValueError:
        return 0.0


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


POOL_MATRIX = TaskRules(
    "pool_matrix",
    notation=grid_notation(DECIMAL_CELL),
    fix=ScorerFix(
        fault="Ignores the text behind a `#`; numbers that are off by 1 % score 1.0.",
        score=_pooled,
    ),
    item_checks=(
        ItemCheck(
            "kernel is one cell, so that the output is the input",
            lambda entry: bool(entry["metadata"]["pool_size"] == 1),
            answer_stands=True,
        ),
    ),
    other_interpretations=_without_cut_off_windows,
)
