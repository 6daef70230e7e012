"""Rules of the games that fill a board."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from random import Random
from typing import Any

from rg_env.task_rules.answer_matching import one_answer
from rg_env.task_rules.reading.lists import (
    INTEGER_CELL,
    QUEEN_CELL,
    grid_notation,
    literal_guard,
    read_grid,
)
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

# -- futoshiki -------------------------------------------------------------------------

Matrix = list[list[int]]
Cell = tuple[int, int]
CellLists = dict[Cell, list[Cell]]
Constraints = Mapping[tuple[Cell, Cell], str]
"""Two cells to "<" or ">"."""


def _rows(
    numbers: Sequence[int], columns: Sequence[Sequence[int]], row: tuple[int, ...] = ()
) -> Iterator[tuple[int, ...]]:
    """Yield the orders of the numbers that repeat none in a column.

    They come in the library's order.
    """
    if len(row) == len(columns):
        yield row
        return
    for number in numbers:
        if number not in row and number not in columns[len(row)]:
            yield from _rows(numbers, columns, (*row, number))


def _random_latin_square(_dataset: Any, size: int, rng: Random) -> Matrix:
    """Fill row after row with the first order that fits, drawn as in the library."""
    grid: Matrix = []

    def fill() -> bool:
        if len(grid) == size:
            return True
        numbers = list(range(1, size + 1))
        rng.shuffle(numbers)
        for row in _rows(numbers, list(zip(*grid, strict=True)) or [()] * size):
            grid.append(list(row))
            if fill():
                return True
            grid.pop()
        return False

    fill()
    return grid


def _larger_and_smaller(
    cells: Iterable[Cell], constraints: Constraints
) -> tuple[CellLists, CellLists]:
    """Return the cells that must be larger and those that must be smaller, by cell."""
    larger: CellLists = {cell: [] for cell in cells}
    smaller: CellLists = {cell: [] for cell in cells}
    for pair, sign in constraints.items():
        low, high = pair if sign == "<" else pair[::-1]
        larger[low].append(high)
        smaller[high].append(low)
    return larger, smaller


def _count_solutions(
    _dataset: Any, grid: Matrix, constraints: Constraints, limit: int = 2
) -> int:
    """Count solutions up to a limit; the cell with the fewest numbers is filled next.

    A number is a bit, and a blank cell is 0.
    """
    size = len(grid)
    bits = {(r, c): 1 << grid[r][c] >> 1 for r in range(size) for c in range(size)}
    rows = [sum(bits[r, c] for c in range(size)) for r in range(size)]
    columns = [sum(bits[r, c] for r in range(size)) for c in range(size)]
    larger, smaller = _larger_and_smaller(bits, constraints)

    def free(cell: Cell) -> int:
        taken = rows[cell[0]] | columns[cell[1]]
        for other in larger[cell]:
            taken |= -bits[other]  # this number and all above it
        for other in smaller[cell]:
            taken |= max(0, 2 * bits[other] - 1)  # this number and all below it
        return ~taken & ((1 << size) - 1)

    def count(limit: int) -> int:
        choices = {cell: free(cell) for cell, bit in bits.items() if not bit}
        if not choices:
            return 1
        r, c = min(choices, key=lambda cell: choices[cell].bit_count())
        found = 0
        for bit in (1 << number for number in range(size)):
            if found < limit and choices[r, c] & bit:
                bits[r, c] = bit
                rows[r] ^= bit
                columns[c] ^= bit
                found += count(limit - found)
                rows[r] ^= bit
                columns[c] ^= bit
        bits[r, c] = 0
        return found

    return count(limit)


FUTOSHIKI = TaskRules(
    "futoshiki",
    fix=one_answer(
        partial_credit=False, ignored="< > \N{LOGICAL AND} \N{LOGICAL OR} v ^ |"
    ),
    faster=(
        FasterFunction(
            module="reasoning_gym.games.futoshiki",
            name="FutoshikiDataset._generate_random_solution",
            digest="737131d3c78962d1",
            make=lambda original: _random_latin_square,
        ),
        FasterFunction(
            module="reasoning_gym.games.futoshiki",
            name="FutoshikiDataset.count_solutions",
            digest="0ec00892e6304727",
            make=lambda original: _count_solutions,
        ),
    ),
)

# -- survo -----------------------------------------------------------------------------


def _is_filling(matrix: Matrix, puzzle: Matrix, numbers: list[int]) -> bool:
    """Return whether the blanks hold the numbers, each once, and all sums are right."""
    if [len(row) for row in matrix] != [len(row) for row in puzzle]:
        return False
    pairs = [*zip(chain(*puzzle), chain(*matrix), strict=True)]
    filled = [number for clue, number in pairs if clue == 0]
    lines = [*matrix, *map(list, zip(*matrix, strict=True))]
    return (
        all(clue in (0, number) for clue, number in pairs)
        and sorted(filled) == sorted(numbers)
        and all(sum(line[:-1]) == line[-1] for line in lines)
    )


def _score_filling(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a matrix with any right filling."""
    metadata = entry["metadata"]
    matrix = [list(map(int, row)) for row in read_grid(answer, INTEGER_CELL) or ()]
    return float(_is_filling(matrix, metadata["puzzle"], metadata["candidate_numbers"]))


SURVO = TaskRules(
    "survo",
    notation=grid_notation(INTEGER_CELL),
    fix=ScorerFix(
        _score_filling,
        "Accepts only one of several fillings; ignores everything but whole numbers.",
    ),
    level_repair=LevelRepair(
        {2: {"min_board_size": 5}, 3: {"min_board_size": 6}},
        "levels 2 and 3 ask for more empty cells than their smallest board has",
    ),
    is_rebuilt=True,
)


# -- n_queens --------------------------------------------------------------------------

# The library makes a deep copy of each of the 14,200 solutions for 12 queens. Here all
# boards share their rows, which is safe because an item's puzzle is a copy.

Board = list[list[str]]


def _all_solutions(dataset: Any, n: int) -> list[Board]:
    """Return the boards of the library's `_get_all_solutions`, in its order."""
    empty = ["_"] * n
    rows = [[*empty[:column], "Q", *empty[column + 1 :]] for column in range(n)]
    boards = []

    def place_below(board: Board, taken: int, falling: int, rising: int) -> None:
        """Place the other queens; the sets of columns that are attacked are bits."""
        if len(board) == n:
            boards.append(board)
            return
        free = ~(taken | falling | rising) & ((1 << n) - 1)
        while free:
            bit = free & -free
            free ^= bit
            longer = [*board, rows[bit.bit_length() - 1]]
            place_below(longer, taken | bit, (falling | bit) << 1, (rising | bit) >> 1)

    place_below([], 0, 0, 0)
    return boards


N_QUEENS = TaskRules(
    "n_queens",
    guard=literal_guard(r"[_Q.\s]*"),
    notation=grid_notation(QUEEN_CELL),
    kept_signs="_",
    level_repair=LevelRepair(
        {0: {"n": 5}, 1: {"n": 7, "max_remove": 6}},
        "a board of 4 has two solutions and one of 6 four, and all queens may be"
        " removed, so that one board is right in up to 70 of 100 items",
    ),
    faster=(
        FasterFunction(
            module="reasoning_gym.games.n_queens",
            name="NQueensDataset._get_all_solutions",
            digest="f7bf1aaf33f46cf9",
            make=lambda original: _all_solutions,
        ),
    ),
)
