"""Solvers of tasks about grids, and puzzles on them."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import product

from tools.gold_solvers.reading import (
    Grid,
    Solver,
    Verdict,
    computed,
    found,
    grid,
    integers,
    number_grid,
    right_if,
    rows_text,
)

Cell = tuple[int, int]


def _cells(rows: Grid) -> Iterator[tuple[int, int, object]]:
    for r, row in enumerate(rows):
        for c, value in enumerate(row):
            yield r, c, value


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


def _numbers(question: str) -> list[list[int]]:
    """Return the last block of lines that hold nothing but whole numbers."""
    blocks = re.findall(r"(?:^[ \t]*\d+(?:[ \t]+\d+)*[ \t]*(?:\n|\Z))+", question, re.M)
    return number_grid(blocks[-1])


def _oranges(question: str) -> int:
    rows = _numbers(question)
    fresh = {(r, c) for r, c, v in _cells(rows) if v == 1}
    far = _distances([(r, c) for r, c, v in _cells(rows) if v == 2], fresh.__contains__)
    return -1 if fresh - set(far) else max(far.values(), default=0)


def _maze(question: str) -> str:
    start, goal = found(r"from '(.)' \(start\) to '(.)' \(goal\)", question)
    wall, passage = found(r"'(.)' = Wall, '(.)' = Passage", question)
    del wall
    rows = [
        list(x) for x in found(r"```\n(.*?)\n```\nLegend", question)[0].splitlines()
    ]
    at = {(r, c): v for r, c, v in _cells(rows)}
    begin = next(cell for cell, v in at.items() if v == start)
    end = next(cell for cell, v in at.items() if v == goal)
    far = _distances([begin], lambda cell: at.get(cell) in (passage, goal))
    return str(far[end]) if end in far else "infeasible"


STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def _shortest_path(question: str, gold: str) -> Verdict:
    rows = grid(found(r"following grid:\s*(.*)", question)[0])
    at = {(r, c): v for r, c, v in _cells(rows)}
    begin = next(cell for cell, v in at.items() if v == "*")
    end = next(cell for cell, v in at.items() if v == "#")
    far = _distances([begin], lambda cell: at.get(cell) in ("O", "#"))
    if gold == "infeasible":
        return right_if(end not in far)
    r, c = begin
    for step in gold.split():
        r, c = r + STEPS[step][0], c + STEPS[step][1]
        if at.get((r, c)) not in ("O", "#"):
            return "refuted"
    return right_if((r, c) == end and len(gold.split()) == far[end])


def _turned(rows: Grid) -> Grid:
    return [list(row) for row in zip(*rows[::-1], strict=True)]


def _rotate(question: str) -> str:
    rows = _numbers(question)
    degrees = int(found(r"by (-?\d+) degrees clockwise", question)[0])
    for _ in range(degrees // 90 % 4):
        rows = _turned(rows)
    return rows_text(rows)


def _pool(question: str, gold: str) -> Verdict:
    how, size_ = found(
        r"Perform (max|average) pooling .*? kernel size of (\d+)", question
    )
    rows, size = _numbers(question), int(size_)
    told = [[float(v) for v in row] for row in grid(gold)]
    for r, row in enumerate(told):
        for c, value in enumerate(row):
            lines = rows[r * size : (r + 1) * size]
            part = [v for line in lines for v in line[c * size : (c + 1) * size]]
            wanted = max(part) if how == "max" else sum(part) / len(part)
            if abs(value - wanted) > 0.0051:
                return "refuted"
    return right_if(
        len(told) == -(-len(rows) // size) and len(told[0]) == -(-len(rows[0]) // size)
    )


def _next_life(alive: set[Cell], height: int, width: int) -> set[Cell]:
    counts: dict[Cell, int] = {}
    for r, c in alive:
        for dr, dc in product((-1, 0, 1), repeat=2):
            if dr or dc:
                cell = ((r + dr) % height, (c + dc) % width)
                counts[cell] = counts.get(cell, 0) + 1
    return {cell for cell, n in counts.items() if n == 3 or (n == 2 and cell in alive)}


def _life(question: str, gold: str) -> Verdict:
    steps = int(found(r"after (\d+) steps", question)[0])
    rows = json.loads(question[question.rindex("\n\n") :].strip().rstrip("."))
    alive = {(r, c) for r, c, v in _cells(rows) if v}
    for _ in range(steps):
        alive = _next_life(alive, len(rows), len(rows[0]))
    return right_if({(r, c) for r, c, v in _cells(json.loads(gold)) if v} == alive)


def _halting(question: str, gold: str) -> Verdict:
    steps = int(found(r"before (\d+) steps", question)[0])
    board = question.split("Initial board:")[1]
    if "..." in board:
        return "not knowable"
    rows = [integers(line) for line in board.strip().splitlines()]
    alive = {(r, c) for r, c, v in _cells(rows) if v}
    for _ in range(steps):
        if not alive:
            break
        alive = _next_life(alive, len(rows), len(rows[0]))
    return right_if(str(not alive) == gold)


def _kakurasu(question: str, gold: str) -> Verdict:
    rows, columns = map(json.loads, re.findall(r"\[[\d, ]+\]", question)[:2])
    options = [
        [
            bits
            for bits in product((0, 1), repeat=len(columns))
            if sum(i * b for i, b in enumerate(bits, 1)) == total
        ]
        for total in rows
    ]
    told = number_grid(gold)
    is_right = (
        all(tuple(row) in set(fits) for row, fits in zip(told, options, strict=True))
        and [
            sum(r * row[c] for r, row in enumerate(told, 1))
            for c in range(len(columns))
        ]
        == columns
    )
    return right_if(is_right)


def _queens(question: str, gold: str) -> Verdict:
    given = [row for row in grid(question) if len(row) > 3 and set(row) <= {"_", "Q"}]
    told = grid(gold)
    queens = [(r, c) for r, c, v in _cells(told) if v == "Q"]
    kept = {(r, c) for r, c, v in _cells(given) if v == "Q"}
    size = len(given)
    return right_if(
        kept <= set(queens)
        and [len(row) for row in told] == [size] * size
        and all(cell in ("_", "Q") for row in told for cell in row)
        and len(queens) == size
        and all(
            len(set(line)) == size
            for line in (
                [r for r, _ in queens],
                [c for _, c in queens],
                [r - c for r, c in queens],
                [r + c for r, c in queens],
            )
        )
    )


def _sokoban(question: str, gold: str) -> Verdict:
    rows = grid(found(r"your puzzle:\s*\n(.*)", question)[0])
    at = {(r, c): str(v) for r, c, v in _cells(rows)}
    walls = {cell for cell, v in at.items() if v == "+"}
    boxes = {cell for cell, v in at.items() if v in "@$"}
    goals = {cell for cell, v in at.items() if v in "X$%"}
    r, c = next(cell for cell, v in at.items() if v in "*%")
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


def _modulo(question: str, gold: str) -> Verdict:
    told = [list(line) for line in gold.splitlines()]
    kept = [line for line in question.splitlines() if set(line) & set("✅❌❔")]
    if any(
        asked not in ("❔", mark)
        for line, row in zip(kept, told, strict=True)
        for asked, mark in zip(line, row, strict=True)
    ):
        return "refuted"
    marked = {(r, c): mark == "✅" for r, c, mark in _cells(told)}
    first = next(cell for cell, is_marked in marked.items() if is_marked)
    rules: list[Callable[[int, int, int], int]] = [
        lambda x, y, d: (x + y) % d,
        lambda x, y, d: abs(x - y) % d,
        lambda x, y, d: x * y % d,
        lambda x, y, d: pow(x, y, d),
    ]
    for rule, divisor in product(rules, range(1, 400)):
        target = rule(first[1], first[0], divisor)
        if all(
            (rule(x, y, divisor) == target) is is_marked
            for (y, x), is_marked in marked.items()
        ):
            return "right"
    return "refuted"


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
    lines = found(r"```\n(.*?)\n```", question)[0].split("\n")
    columns = lines[0].split()
    board: dict[Cell, str] = {}
    for line in lines[1:]:
        row, *stones = line.split()
        for c, stone in enumerate(stones):
            board[int(row), c] = stone
    takes = {
        f"{columns[cell[1]]}{cell[0]}": _captures(board, cell)
        for cell, stone in board.items()
        if stone == "."
    }
    best = max(takes.values())
    if takes.get(gold, 0) == 0:
        return "refuted"
    if "as many white stones" in question:
        if takes[gold] < best:
            return "refuted"
        return right_if(True) if list(takes.values()).count(best) == 1 else "not unique"
    return "right" if sum(n > 0 for n in takes.values()) == 1 else "not unique"


SOLVERS: dict[str, Solver] = {
    "game_of_life": _life,
    "game_of_life_halting": _halting,
    "kakurasu": _kakurasu,
    "maze": computed(_maze),
    "modulo_grid": _modulo,
    "n_queens": _queens,
    "pool_matrix": _pool,
    "rotate_matrix": computed(_rotate),
    "rotten_oranges": computed(_oranges),
    "shortest_path": _shortest_path,
    "sokoban": _sokoban,
    "tsumego": _tsumego,
}
