"""Solvers of tasks about grids, and puzzles on them."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from fractions import Fraction
from functools import cache
from itertools import groupby, islice, product
from typing import Any

import numpy as np

from rg_env.task_rules.games.moves import SIDE, read_board
from tools.gold_solvers.reading import (
    Grid,
    Moves,
    Solver,
    followed,
    found,
    grid,
    integers,
    number_grid,
    one_of,
    ways,
)

Cell = tuple[int, int]
Swap = tuple[frozenset[tuple[str, str]], str]
"""The color and the field of each knight, and the color that moves next."""


def _board(rows: Grid) -> dict[Cell, str]:
    return {(r, c): v for r, row in enumerate(rows) for c, v in enumerate(row)}


def _places(board: dict[Cell, str], signs: str) -> set[Cell]:
    return {cell for cell, sign in board.items() if sign in signs}


STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def _steps_to(cells: Set[Cell]) -> Moves[Cell]:
    """Return the moves from a cell to those of some cells that are beside it."""

    def steps(at: Cell) -> Iterator[tuple[str, Cell]]:
        for word, (down, right) in STEPS.items():
            to = (at[0] + down, at[1] + right)
            if to in cells:
                yield word, to

    return steps


def _shortest_path(question: str, gold: str) -> bool:
    board = _board(grid(found(r"following grid:\s*(.*)", question)[0]))
    (begin,), (end,) = _places(board, "*"), _places(board, "#")
    steps = _steps_to(_places(board, "O#"))
    paths = (path for at, path in ways(begin, steps) if at == end)
    shortest = next(paths, None)
    if gold == "infeasible" or shortest is None:
        return gold == "infeasible" and shortest is None
    path = gold.split()
    is_there = followed(begin, steps, path) == end
    return is_there and len(path) == len(shortest)


def _kakurasu(question: str, gold: str) -> bool:
    rows, columns = map(json.loads, re.findall(r"\[[\d, ]+\]", question)[:2])
    told = np.array(number_grid(gold))
    down, across = (np.arange(1, length + 1) for length in told.shape)
    sums = [(told @ across).tolist(), (down @ told).tolist()]
    return {*told.flat} <= {0, 1} and sums == [rows, columns]


def _queens(question: str, gold: str) -> bool:
    rows = [row for row in grid(question) if len(row) > 3 and set(row) <= {"_", "Q"}]
    given, told = _board(rows), _board(grid(gold))
    queens = _places(told, "Q")
    lines = [(r, c, r - c, r + c) for r, c in queens]
    return (
        told.keys() == given.keys()
        and _places(told, "_Q") == told.keys()
        and _places(given, "Q") <= queens
        and all(
            len({*line}) == len(queens) == len(rows)
            for line in zip(*lines, strict=True)
        )
    )


def _sokoban(question: str, gold: str) -> bool:
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
    return is_solved


def _captures(board: dict[Cell, str], move: Cell) -> int:
    """Return how many white stones a black move takes."""
    to_white = _steps_to(_places(board, "O"))
    to_free = _steps_to(_places(board, ".") - {move})
    taken: set[Cell] = set()
    for _, stone in to_white(move):
        group = {cell for cell, _ in ways(stone, to_white)}
        if not any([*to_free(cell)] for cell in group):
            taken |= group
    return len(taken)


def _tsumego(question: str, gold: str) -> bool:
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
    return best == [gold]


_OTHER = {"w": "B", "B": "w"}


@cache
def _is_leap(a: str, b: str) -> bool:
    return {abs(ord(a[0]) - ord(b[0])), abs(int(a[1:]) - int(b[1:]))} == {1, 2}


def _knight_swap(question: str, gold: str) -> bool:
    head, rows = found(r"```\n\s+([A-Z ]+)\n(.*?)```", question)
    pieces = {
        f"{column}{number}": sign.strip()
        for number, row in re.findall(r"^(\d+) \|(.*)\|$", rows, re.M)
        for column, sign in zip(head.split(), row.split("|"), strict=True)
        if sign.strip()
    }

    def moves(state: Swap) -> Iterator[tuple[str, Swap]]:
        knights, color = state
        free = pieces.keys() - {at for _, at in knights}
        for at in (at for owner, at in knights if owner == color):
            for to in (to for to in free if _is_leap(at, to)):
                after = knights - {(color, at)} | {(color, to)}
                yield f"{color},{at},{to}", (after, _OTHER[color])

    knights = frozenset((sign, at) for at, sign in pieces.items() if sign in _OTHER)
    swapped = frozenset((_OTHER[color], at) for color, at in knights)
    start = (knights, found(r"(\w) moves first", question)[0])
    if gold == "No":
        return all(state[0] != swapped for state, _ in ways(start, moves))
    end = followed(start, moves, json.loads(gold))
    return end is not None and end[0] == swapped


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


def _pool(question: str, gold: str) -> bool:
    """Compare at the two decimals that are asked for; a half goes up or down."""
    rows = grid(re.sub(r"[\[\],]", " ", gold))
    told = np.array([[Fraction(x) for x in row] for row in rows])
    return any(
        told.shape == pools.shape and (abs(told - pools) <= Fraction(1, 200)).all()
        for pools in _pools(question)
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


def _rearc(question: str, gold: str) -> bool:
    """Say that a board cannot be known from examples that show nothing of it."""
    blocks = re.findall(r"put:\n((?:[\d ]+\n)+)", f"{question.strip()}\n")
    asked, made = blocks.pop(), blocks[1::2]
    changes = blocks[::2] != made or asked.strip() == gold.strip()
    is_shown = set(gold) <= set("".join([asked, *blocks]))
    if changes and is_shown:
        raise ValueError("which rule they show is not judged")
    return False


# -- right answers where the library gives none ----------------------------------------

MAX_BOARDS = 60_000
"""Boards that are looked at before a puzzle of cars is given up."""

Cars = tuple[tuple[Cell, ...], ...]
"""The cells of each car, from the left or from above; the first car is red."""


def _puzzle_of_cars(config: str) -> tuple[Cars, Moves[Cars]]:
    """Return the cars of a board, and the moves by one cell, such as `B+`."""
    letters, walls = read_board(config)

    def moves(cars: Cars) -> Iterator[tuple[str, Cars]]:
        taken = walls.union(*cars)
        for place, (letter, car) in enumerate(zip(letters, cars, strict=True)):
            down, right = (0, 1) if car[0][0] == car[1][0] else (1, 0)
            for sign, by in (("+", 1), ("-", -1)):
                moved = tuple((r + by * down, c + by * right) for r, c in car)
                is_inside = all(0 <= index < SIDE for cell in moved for index in cell)
                if is_inside and taken.difference(car).isdisjoint(moved):
                    after = (*cars[:place], moved, *cars[place + 1 :])
                    yield f"{letter}{sign}", after

    return tuple(map(tuple, letters.values())), moves


def _is_free(cars: Cars) -> bool:
    return cars[0][-1][1] == SIDE - 1


def car_moves(config: str) -> str | None:
    """Return the fewest moves that free the red car, None where too many are needed."""
    for cars, steps in islice(ways(*_puzzle_of_cars(config)), MAX_BOARDS):
        if _is_free(cars):
            # Steps of one car in a row are one move: A+1 A+1 is A+2.
            return " ".join(f"{step}{len([*run])}" for step, run in groupby(steps))
    return None


def frees_the_car(metadata: Mapping[str, str], answer: str) -> bool:
    """Say whether moves can be made in full and bring the red car to the exit."""
    steps: list[str] = []
    for move in answer.split():
        match = re.fullmatch(r"([A-Z][+-])(\d)", move)
        if match is None:
            return False
        steps += [match[1]] * int(match[2])
    end = followed(*_puzzle_of_cars(metadata["board_config"]), steps)
    return end is not None and _is_free(end)


def box_plan(squares: Mapping[str, list[str]]) -> str:
    """Return a plan that carries one box after the other to a target of its colour."""
    places: defaultdict[str, list[tuple[float, ...]]] = defaultdict(list)
    for name, things in squares.items():
        for thing in things:
            places[thing].append(tuple(map(float, name.split("_"))))
    steps = []
    boxes = [(t, place) for t in places if t.startswith("box_") for place in places[t]]
    for box, (row, column) in boxes:
        target = f"target_{box[4:]}"
        goal = places[target].pop()
        while (row, column) != goal:
            agent = f"Agent[{row}, {column}]"
            if row != goal[0]:
                row += 1.0 if goal[0] > row else -1.0
            else:
                column += 1.0 if goal[1] > column else -1.0
            steps.append({agent: f"move({box}, square[{row}, {column}])"})
        steps.append({f"Agent[{row}, {column}]": f"move({box}, {target})"})
    return json.dumps(steps)


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
