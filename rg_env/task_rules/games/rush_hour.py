"""Moves of rush_hour, of which the library passes over the impossible ones.

There a car that is told to go further than it can goes as far as it can, and a move of
a blocked car is no move. So some hundred moves at random free the red car in 19 of 20
easy items. Here every move must be possible in full; a legal one is scored as ever.

Once the red car stands at the exit it may drive on by the two cells of its length, and
the other cars move as if it were gone.
"""

from __future__ import annotations

import re
import string

from rg_env.task_rules.reading.filler_words import is_filler_beside
from rg_env.task_rules.reading.lists import BETWEEN_MOVES, list_of, repetitions
from rg_env.task_rules.rules import (
    READABLE,
    Entry,
    Guard,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

Cell = tuple[int, int]
Cars = dict[str, list[Cell]]

SIDE = 6
"""Rows and columns of the board."""

RED = "A"

EXIT: list[Cell] = [(2, SIDE - 2), (2, SIDE - 1)]
"""Where the red car has to come."""

_MOVE = re.compile(r"([A-Z])([+-])([0-9]+)")


def read_board(config: str) -> tuple[Cars, set[Cell]]:
    """Return the cars and the walls of a board of 36 letters, row by row.

    The letters of the cars are those of the question, which are given in their order.
    """
    by_label: Cars = {}
    for index, label in enumerate(config):
        by_label.setdefault(label, []).append(divmod(index, SIDE))
    by_label.pop("o", None)
    walls = set(by_label.pop("x", []))
    cars = (by_label[label] for label in sorted(by_label))
    return dict(zip(string.ascii_uppercase, cars, strict=False)), walls


def _step(cars: Cars, walls: set[Cell], car: str, direction: int) -> bool:
    """Move a car by one cell; return whether that was possible."""
    cells = cars[car]
    down, right = (0, direction) if cells[0][0] == cells[1][0] else (direction, 0)
    moved = [(row + down, column + right) for row, column in cells]
    gone = {car, RED} if cars[RED] == EXIT else {car}
    taken = {cell for other in cars.keys() - gone for cell in cars[other]} | walls
    if not all(0 <= index < SIDE for cell in moved for index in cell):
        return False
    if not taken.isdisjoint(moved):
        return False
    cars[car] = moved
    return True


def _all_moves_possible(config: str, answer: str) -> bool:
    cars, walls = read_board(config)
    driven_out = 0
    for car, sign, digits in _MOVE.findall(answer):
        if car not in cars or len(digits) > 2:
            return False
        direction = 1 if sign == "+" else -1
        for _ in range(int(digits)):
            if car == RED and direction == 1 and cars[RED] == EXIT:
                driven_out += 1
            elif (car == RED and driven_out) or not _step(cars, walls, car, direction):
                return False
    return driven_out <= len(EXIT)


def _score_moves(answer: str, entry: Entry, library: LibraryScore) -> float:
    if not is_filler_beside(_MOVE, answer):
        return 0.0
    if not _all_moves_possible(entry["metadata"]["board_config"], answer):
        return READABLE
    return library(answer)


_WRITTEN_MOVE = re.compile(
    r"(?:(?:move|car)\s+)*([A-Z])\1{0,2}(?:\s*:)?\s*([+-])\s*([0-9]+)", re.IGNORECASE
)


def _car_move(move: re.Match[str]) -> str:
    return f"{move[1].upper()}{move[2]}{move[3]}"


_MAX_STEPS = 20_000
_STEPS = re.compile(r"[A-Z][+-](\d+)")


def _too_many_steps(answer: str, gold: str | None) -> str | None:
    steps = repetitions(_STEPS.findall(answer), max_digits=2)
    if steps is None:
        return "a move is too long"
    return f"more than {_MAX_STEPS} steps" if steps > _MAX_STEPS else None


RULES = TaskRules(
    "rush_hour",
    guard=Guard(
        "moves a car a billion times for A+999999999",
        "moves by at most 4",
        _too_many_steps,
    ),
    notation=list_of(_WRITTEN_MOVE, " ".join, BETWEEN_MOVES, _car_move),
    fix=ScorerFix(
        scorer_sha256="56532d970d7b7f4d391c737b753e1c356892a3b3f73701923d7223be8b3c8c40",
        fault="Skips impossible moves, so that enough random moves free the car.",
        score=_score_moves,
    ),
)
