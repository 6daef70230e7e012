"""futoshiki: grids of numbers with rules between them.

For each row of the board the library tries all orders of its numbers, hundreds of
thousands. For each clue it solves the puzzle without it, in a second at worst, and then
counts the solutions one cell after the other. Most clues are needed because there would
be another solution, which is found first here, and cell by cell of the fewest choices.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from rg_env.task_rules.reading.grids import DIGIT, read_grid
from rg_env.task_rules.reading.number_grids import number_grid_fix
from rg_env.task_rules.rules import Entry, FasterFunction, OtherScore, TaskRules

_BESIDE_NUMBERS = re.compile("[<>\u2227\u2228^v]")
_UPRIGHT = {"^": "\u2227", "v": "\u2228"}


def _as_drawn(answer: str, entry: Entry) -> str:
    """Write a grid as the puzzle is drawn.

    The rules between its numbers may be left out, all of them or none.
    """
    drawn = entry["answer"]
    rules = [_UPRIGHT.get(r, r) for r in _BESIDE_NUMBERS.findall(answer)]
    if rules and rules != _BESIDE_NUMBERS.findall(drawn):
        return answer
    rows = read_grid(_BESIDE_NUMBERS.sub(" ", answer), DIGIT, compact=True)
    size = entry["metadata"]["board_size"]
    if rows is None or len(rows) != size or len(rows[0]) != size:
        return answer
    cells = (cell for row in rows for cell in row)
    return DIGIT.sub(lambda match: next(cells), drawn)


Grid = list[list[int]]
Cell = tuple[int, int]
Constraints = Mapping[tuple[Cell, Cell], str]

FILLED_IN_THE_END = 0.1
"""Share of the cells that the library aims to leave filled."""


class _Counter:
    """Counts the ways to fill a grid, up to two.

    Values are bits, 1 for value 1, 2 for value 2, 4 for value 3 and so on.
    """

    def __init__(self, grid: Grid, constraints: Constraints) -> None:
        size = len(grid)
        self._all_values = (1 << size) - 1
        self._value: dict[Cell, int] = {}
        self._in_row, self._in_column = [0] * size, [0] * size
        self._empty = []
        for row, values in enumerate(grid):
            for column, value in enumerate(values):
                if value:
                    self._put((row, column), 1 << (value - 1))
                else:
                    self._empty.append((row, column))
        self._below: dict[Cell, list[Cell]] = defaultdict(list)
        self._above: dict[Cell, list[Cell]] = defaultdict(list)
        for (first, second), sign in constraints.items():
            less, more = (first, second) if sign == "<" else (second, first)
            self._below[more].append(less)
            self._above[less].append(more)

    def _put(self, cell: Cell, value: int) -> None:
        self._value[cell] = value
        self._in_row[cell[0]] |= value
        self._in_column[cell[1]] |= value

    def _take(self, cell: Cell) -> None:
        value = self._value.pop(cell)
        self._in_row[cell[0]] ^= value
        self._in_column[cell[1]] ^= value

    def _choices(self, cell: Cell) -> int:
        row, column = cell
        free = self._all_values & ~(self._in_row[row] | self._in_column[column])
        for other in self._below[cell]:
            if other in self._value:
                free &= ~(2 * self._value[other] - 1)
        for other in self._above[cell]:
            if other in self._value:
                free &= self._value[other] - 1
        return free

    def count(self, enough: int = 2) -> int:
        """Return how many ways there are, `enough` at most."""
        if not self._empty:
            return 1
        cell, free = min(
            ((cell, self._choices(cell)) for cell in self._empty),
            key=lambda pair: pair[1].bit_count(),
        )
        found = 0
        self._empty.remove(cell)
        while free and found < enough:
            value = free & -free
            free ^= value
            self._put(cell, value)
            found += self.count(enough - found)
            self._take(cell)
        self._empty.append(cell)
        return found


def _rows(numbers: list[int], above: list[int]) -> Iterator[list[int]]:
    """Yield the orders of some numbers in which none stands below itself.

    They come as `itertools.permutations` has them. `above` holds the numbers of each
    column so far, as bits.
    """

    def extended(row: list[int], left: list[int]) -> Iterator[list[int]]:
        if not left:
            yield row
        for place, number in enumerate(left):
            if not above[len(row)] >> number & 1:
                rest = left[:place] + left[place + 1 :]
                yield from extended([*row, number], rest)

    return extended([], numbers)


def random_solution(dataset: Any, size: int, rng: Random) -> Grid:
    """Return a board; it takes the place of `_generate_random_solution`."""
    grid: Grid = []
    above = [0] * size

    def flip(row: list[int]) -> None:
        for column, number in enumerate(row):
            above[column] ^= 1 << number

    def fill() -> bool:
        if len(grid) == size:
            return True
        numbers = list(range(1, size + 1))
        rng.shuffle(numbers)
        for row in _rows(numbers, above):
            grid.append(row)
            flip(row)
            if fill():
                return True
            grid.pop()
            flip(row)
        return False

    if not fill():
        raise ValueError(f"there is no board of size {size}")
    return grid


def _remove_clues(
    dataset: Any, grid: Grid, constraints: Constraints, rng: Random
) -> Grid:
    """Take clues off a board.

    A clue goes if one solution is left and the library's solver finds it; that solver
    gives some puzzles up, so it is asked too.
    """
    size = len(grid)
    target = int(FILLED_IN_THE_END * size * size)
    cells = [(row, column) for row in range(size) for column in range(size)]
    filled = size * size - sum(row.count(0) for row in grid)

    def is_needed() -> bool:
        if _Counter(grid, constraints).count() > 1:
            return True
        return dataset._solve(copy.deepcopy(grid), constraints) is None

    def one_pass() -> None:
        nonlocal filled
        rng.shuffle(cells)
        for row, column in cells:
            if filled <= target:
                return
            clue = grid[row][column]
            if clue == 0:
                continue
            grid[row][column] = 0
            if is_needed():
                grid[row][column] = clue
            else:
                filled -= 1

    one_pass()
    if filled > 2 * target:
        one_pass()
    return grid


_LIBRARY = "reasoning_gym.games.futoshiki"
RULES = TaskRules(
    "futoshiki",
    notation=_as_drawn,
    fix=number_grid_fix(
        "ec3ce1257de8220be8a73f69de63dfaa7395a33e239d730cb02497afaaf740cc"
    ),
    faster=(
        FasterFunction(
            _LIBRARY,
            "FutoshikiDataset._remove_clues",
            "7341e90c862527b4",
            lambda own: _remove_clues,
        ),
        FasterFunction(
            _LIBRARY,
            "FutoshikiDataset._generate_random_solution",
            "737131d3c78962d1",
            lambda own: random_solution,
        ),
    ),
    other_scores=(
        OtherScore(
            "the right board in the midst of a sentence, and the same with every 1 made"
            " a 2",
            "above 0",
            "The board is read cell by cell; a line of words is no row of it.",
        ),
    ),
)
