"""Rules of manipulate_matrix and pool_matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, permutations, product
from typing import Any

from rg_env.task_rules.answer_matching import CONTAINMENT_FIX
from rg_env.task_rules.reading.lists import DECIMAL_CELL, grid_notation
from rg_env.task_rules.reading.numbers import is_rounded
from rg_env.task_rules.rules import Entry, ItemCheck, LibraryScore, ScorerFix, TaskRules

# -- manipulate_matrix -----------------------------------------------------------------


def _turned(matrix: Any, quarters: int) -> Any:
    """Return a matrix after quarter turns to the right."""
    for _ in range(quarters % 4):
        matrix = [*zip(*matrix[::-1], strict=True)]
    return matrix


_OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "rows": lambda matrix, _: matrix[::-1],
    "columns": lambda matrix, _: [row[::-1] for row in matrix],
    "dmirror": lambda matrix, _: [*zip(*matrix, strict=True)],
    "cmirror": lambda matrix, _: [*zip(*_turned(matrix, 2), strict=True)],
    "map": lambda matrix, params: [
        [params["to"] if x == params["from"] else x for x in row] for row in matrix
    ],
    "zero_divisible": lambda matrix, params: [
        [x if x % params["k"] else 0 for x in row] for row in matrix
    ],
    "crop": lambda matrix, params: [
        row[params["col_start"] - 1 : params["col_end"]]
        for row in matrix[params["row_start"] - 1 : params["row_end"]]
    ],
    "remove_every_nth_row": lambda matrix, params: [
        row for number, row in enumerate(matrix, 1) if number % params["n"]
    ],
    "remove_every_nth_col": lambda matrix, params: [
        [x for number, x in enumerate(row, 1) if number % params["n"]] for row in matrix
    ],
}
"""The library's operations except turns. Two mirrors have the name of the lines that
they reverse."""


def _other_turns_and_mirrors(entry: Entry) -> Iterator[Entry]:
    """Yield the entry for each meaning of turns and mirrors.

    Turns may go to the left, and a mirror may reverse rows instead of columns.
    """
    mirrors = permutations(("rows", "columns"))
    for sign, (hmirror, vmirror) in product((1, -1), mirrors):
        meanings = {"hmirror": hmirror, "vmirror": vmirror}
        matrix = entry["metadata"]["matrix"]
        for params in entry["metadata"]["operations"]:
            name = params["transform"]
            if name == "rotate":
                matrix = _turned(matrix, sign * (int(params["degrees"]) // 90))
            else:
                matrix = _OPERATIONS[meanings.get(name, name)](matrix, params)
        yield {**entry, "answer": "\n".join(" ".join(map(str, row)) for row in matrix)}


MANIPULATE_MATRIX = TaskRules(
    "manipulate_matrix",
    fix=CONTAINMENT_FIX,
    other_interpretations=_other_turns_and_mirrors,
)


# -- pool_matrix -----------------------------------------------------------------------

REQUIRED_DECIMALS = 2


def _score_pooled(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a matrix that is correct to two decimals, or to more if it has more.

    A column may be written as a row.
    """
    solution = entry["metadata"]["solution"]
    rows = [row.split() for row in answer.split("\n") if row.strip()]
    if len(rows) == 1 and {len(row) for row in solution} == {1}:
        rows = [[number] for number in rows[0]]
    if [len(row) for row in rows] != [len(row) for row in solution]:
        return 0.0
    pairs = zip(chain(*rows), chain(*solution), strict=True)
    try:
        is_right = all(
            is_rounded(written, x, REQUIRED_DECIMALS) for written, x in pairs
        )
    except ValueError:
        return 0.0
    return float(is_right)


def _without_cut_off_windows(entry: Entry) -> list[Entry]:
    """Return the entry without the windows that do not fit into the matrix."""
    metadata = entry["metadata"]
    height = metadata["rows"] // metadata["pool_size"]
    width = metadata["cols"] // metadata["pool_size"]
    solution = [row[:width] for row in metadata["solution"][:height]]
    text = "\n".join(" ".join(str(round(x, 2)) for x in row) for row in solution)
    metadata = {**metadata, "solution": solution}
    return [{**entry, "answer": text.strip(), "metadata": metadata}]


POOL_MATRIX = TaskRules(
    "pool_matrix",
    notation=grid_notation(DECIMAL_CELL),
    fix=ScorerFix(
        fault="Ignores the text behind a `#`; numbers that are off by 1 % score 1.0.",
        score=_score_pooled,
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
