"""Solvers of tasks about grids, and puzzles on them."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from tools.gold_solvers.reading import (
    Grid,
    Solver,
    Verdict,
    found,
    grid,
    integers,
    number_grid,
    one_among,
    one_of,
    right_if,
)

Cell = tuple[int, int]
Knights = frozenset[tuple[str, str]]
"""The color and the field of each knight."""


def _board(rows: Grid) -> dict[Cell, str]:
    return {(r, c): v for r, row in enumerate(rows) for c, v in enumerate(row)}


def _places(board: dict[Cell, str], signs: str) -> set[Cell]:
    return {cell for cell, sign in board.items() if sign in signs}


def _beside(r: int, c: int) -> Iterator[Cell]:
    yield from ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1))


def _distances(
    starts: Iterable[Cell], is_open: Callable[[Cell], bool]
) -> dict[Cell, int]:
    far = dict.fromkeys(starts, 0)
    waiting = deque(far)
    while waiting:
        at = waiting.popleft()
        for cell in _beside(*at):
            if cell not in far and is_open(cell):
                far[cell] = far[at] + 1
                waiting.append(cell)
    return far


STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def _shortest_path(question: str, gold: str) -> Verdict:
    board = _board(grid(found(r"following grid:\s*(.*)", question)[0]))
    (begin,), (end,) = _places(board, "*"), _places(board, "#")
    is_open = _places(board, "O#").__contains__
    far = _distances([begin], is_open)
    if gold == "infeasible":
        return right_if(end not in far)
    r, c = begin
    for step in gold.split():
        r, c = r + STEPS[step][0], c + STEPS[step][1]
        if not is_open((r, c)):
            return "refuted"
    return right_if((r, c) == end and len(gold.split()) == far[end])


def _kakurasu(question: str, gold: str) -> Verdict:
    rows, columns = map(json.loads, re.findall(r"\[[\d, ]+\]", question)[:2])
    told = number_grid(gold)
    sums = [
        [sum(place * bit for place, bit in enumerate(line, 1)) for line in lines]
        for lines in (told, zip(*told, strict=True))
    ]
    is_binary = {bit for row in told for bit in row} <= {0, 1}
    return right_if(is_binary and sums == [rows, columns])


def _queens(question: str, gold: str) -> Verdict:
    rows = [row for row in grid(question) if len(row) > 3 and set(row) <= {"_", "Q"}]
    given, told = _board(rows), _board(grid(gold))
    queens = _places(told, "Q")
    lines = [(r, c, r - c, r + c) for r, c in queens]
    return right_if(
        told.keys() == given.keys()
        and _places(told, "_Q") == told.keys()
        and _places(given, "Q") <= queens
        and len(queens) == len(rows)
        and all(len({*line}) == len(rows) for line in zip(*lines, strict=True))
    )


def _sokoban(question: str, gold: str) -> Verdict:
    board = _board(grid(found(r"your puzzle:\s*\n(.*)", question)[0]))
    walls, goals = _places(board, "+"), _places(board, "X$%")
    boxes = _places(board, "@$")
    ((r, c),) = _places(board, "*%")
    moves = {word[0].upper(): step for word, step in STEPS.items()}
    is_solved = False  # nobody has to stop when all boxes are home
    for dr, dc in [moves[move] for move in gold]:
        ahead, beyond = (r + dr, c + dc), (r + 2 * dr, c + 2 * dc)
        if ahead in walls or (ahead in boxes and beyond in walls | boxes):
            continue  # the player stays
        if ahead in boxes:
            boxes = (boxes - {ahead}) | {beyond}
        r, c = ahead
        is_solved = is_solved or boxes == goals
    return right_if(is_solved)


def _captures(board: dict[Cell, str], move: Cell) -> int:
    """Return how many white stones a black move takes."""
    after = {**board, move: "X"}
    taken: set[Cell] = set()
    for cell in _beside(*move):
        if after.get(cell) != "O" or cell in taken:
            continue
        group = set(_distances([cell], lambda each: after.get(each) == "O"))
        if not any(after.get(n) == "." for stone in group for n in _beside(*stone)):
            taken |= group
    return len(taken)


def _tsumego(question: str, gold: str) -> Verdict:
    columns, *rows = grid(found(r"```\n(.*?)\n```", question)[0])
    board = {
        (int(row), c): stone for row, *stones in rows for c, stone in enumerate(stones)
    }
    takes = {
        f"{columns[cell[1]]}{cell[0]}": _captures(board, cell)
        for cell, stone in board.items()
        if stone == "."
    }
    asks_for_most = "as many white stones" in question
    least = max(1, *takes.values()) if asks_for_most else 1
    best = [field for field, count in takes.items() if count >= least]
    return one_among(best, gold, several="not unique")


_OTHER = {"w": "B", "B": "w"}


@cache
def _is_leap(a: str, b: str) -> bool:
    return {abs(ord(a[0]) - ord(b[0])), abs(int(a[1:]) - int(b[1:]))} == {1, 2}


def _knight_swap(question: str, gold: str) -> Verdict:
    head, rows = found(r"```\n\s+([A-Z ]+)\n(.*?)```", question)
    pieces = {
        f"{column}{number}": sign.strip()
        for number, row in re.findall(r"^(\d+) \|(.*)\|$", rows, re.M)
        for column, sign in zip(head.split(), row.split("|"), strict=True)
        if sign.strip()
    }

    def moves(knights: Knights, color: str) -> Iterator[tuple[str, Knights]]:
        free = pieces.keys() - {at for _, at in knights}
        for at in (at for owner, at in knights if owner == color):
            for to in (to for to in free if _is_leap(at, to)):
                yield f"{color},{at},{to}", knights - {(color, at)} | {(color, to)}

    knights = frozenset((sign, at) for at, sign in pieces.items() if sign in _OTHER)
    swapped = frozenset((_OTHER[color], at) for color, at in knights)
    color = found(r"(\w) moves first", question)[0]
    if gold != "No":
        for move in json.loads(gold):
            allowed = dict(moves(knights, color))
            if move not in allowed:
                return "refuted"
            knights, color = allowed[move], _OTHER[color]
        return right_if(knights == swapped)
    seen = {(knights, color)}
    queue = deque(seen)
    while queue:
        knights, color = queue.popleft()
        if knights == swapped:
            return "refuted"
        fresh = {(after, _OTHER[color]) for _, after in moves(knights, color)} - seen
        seen |= fresh
        queue.extend(fresh)
    return "right"


def _written(matrix: Any) -> str:
    return "\n".join(" ".join(f"{x:g}" for x in row) for row in matrix)


def _pools(question: str) -> list[Any]:
    how, size, rows = found(r"Perform (\w+) .*? size of (\d+):\n(.*)", question)
    matrix, step = np.array(number_grid(rows)) * Fraction(1), int(size)
    pool = np.max if how == "max" else np.mean
    pools = []
    for height, width in (matrix.shape, np.array(matrix.shape) // step * step):
        windows = [
            [pool(matrix[r : r + step, c : c + step]) for c in range(0, width, step)]
            for r in range(0, height, step)
        ]
        pools.append(np.array(windows))
    return [each for each in pools if each.size]


def pooled(question: str) -> set[str]:
    """Pool a matrix with and without the windows that are cut off at its edge."""
    return {_written(np.round(pools.astype(float), 2)) for pools in _pools(question)}


def _pool(question: str, gold: str) -> Verdict:
    """Compare at the two decimals that are asked for; a half goes up or down."""
    rows = grid(re.sub(r"[\[\],]", " ", gold))
    told = np.array([[Fraction(x) for x in row] for row in rows])
    return right_if(
        any(
            told.shape == pools.shape and (abs(told - pools) <= Fraction(1, 200)).all()
            for pools in _pools(question)
        )
    )


def manipulated(question: str) -> set[str]:
    """Do the operations, with turns and mirrors in both senses of their names."""
    rows, told = found(r"matrix:\n(.*?)\n\n.*?no change\n(.*)", question)
    answers = set()
    for turn, is_swapped in product((-1, 1), (False, True)):
        matrix = np.array(number_grid(rows))
        for line in told.strip().splitlines():
            matrix = _manipulated(matrix, line.lower(), turn, is_swapped)
        answers.add(_written(matrix))
    return answers


def _manipulated(matrix: Any, line: str, turn: int, is_swapped: bool) -> Any:
    n, *more = integers(line.replace("-", " ")) or [0]
    if "rotate" in line:
        return np.rot90(matrix, turn * n // 90)
    if "ally mirror" in line:
        return np.flip(matrix, axis=("vert" in line) ^ is_swapped)
    if "diagonal" in line:
        return (np.rot90(matrix, 2) if "counter" in line else matrix).T
    if "map" in line:
        return np.where(matrix == n, more[0], matrix)
    if "divisible" in line:
        return np.where(matrix % n == 0, 0, matrix)
    if "crop" in line:
        return matrix[n - 1 : more[0], more[1] - 1 : more[2]]
    axis = int("column" in line)
    return np.delete(matrix, np.s_[n - 1 :: n], axis)


def _rearc(question: str, gold: str) -> Verdict:
    """Say that a board cannot be known from examples that show nothing of it."""
    blocks = re.findall(r"put:\n((?:[\d ]+\n)+)", f"{question.strip()}\n")
    asked, made = blocks.pop(), blocks[1::2]
    changes = blocks[::2] != made or asked.strip() == gold.strip()
    is_shown = set(gold) <= set("".join([asked, *blocks]))
    if changes and is_shown:
        raise ValueError("which rule they show is not judged")
    return "not knowable"


SOLVERS: dict[str, Solver] = {
    "kakurasu": _kakurasu,
    "knight_swap": _knight_swap,
    "manipulate_matrix": one_of(manipulated),
    "n_queens": _queens,
    "pool_matrix": _pool,
    "rearc": _rearc,
    "shortest_path": _shortest_path,
    "sokoban": _sokoban,
    "tsumego": _tsumego,
}
