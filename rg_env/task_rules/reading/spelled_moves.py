"""Moves of puzzles: with arrows, commas or lines between them, numbered, as a list."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from rg_env.task_rules.games.sokoban import walks_of
from rg_env.task_rules.reading.lists import (
    BETWEEN_MOVES,
    BETWEEN_STEPS,
    plain,
    read_sequence,
)
from rg_env.task_rules.reading.notation import of_short_text
from rg_env.task_rules.reading.values import read_value
from rg_env.task_rules.rules import Notation as Spelling

_CAR_MOVE = re.compile(
    r"(?:(?:move|car)\s+)*([A-Z])\1{0,2}(?:\s*:)?\s*([+-])\s*([0-9]+)", re.IGNORECASE
)
_PRESS = re.compile(r"(?:(?:press|push|button)\s+)*([A-C])\b", re.IGNORECASE)
_DIRECTIONS = re.compile(r"up\b|down\b|left\b|right\b|[udlr]+\b", re.IGNORECASE)
_WORDS = frozenset({"UP", "DOWN", "LEFT", "RIGHT"})
_TURN = re.compile(
    r"[0-9]*[LRUDBFMESXYZxyz]w?[0-9]?(?:['\u2018\u2019\u2032`\u00b4])?[0-9]?"
)
_PRIMES = re.compile("[\u2018\u2019\u2032`\u00b4]")
_TURN_OF_LAYERS = re.compile(r"([12])([LRUDBF])(w?)('?)")
_BETWEEN_TURNS = re.compile(r"(?:[\s,;()\u2192\"\u201c\u201d]|\.(?=\s|$))*")
_DISK_MOVE = re.compile(
    r"(?:move\s+)?(?:the\s+)?dis[kc]\s*([0-9]{1,4})\s*[:,]?\s*(?:from\s+)?"
    r"(?:(?:peg|rod)\s*)?([0-9]{1,4})\s*(?:to\b|\u2192)\s*(?:(?:peg|rod)\s*)?([0-9]{1,4})\b",
    re.IGNORECASE,
)
_KNIGHT_MOVE = re.compile(
    r"(w(?:hite)?|b(?:lack)?)\s*[:,\s]\s*([A-Z][0-9]{1,2})"
    r"\s*(?:,|\u2192|\bto\b|-|\s)\s*([A-Z][0-9]{1,2})\b",
    re.IGNORECASE,
)
_POINT = re.compile(
    r"(?:(?:black|plays?|at|on|to)\s+){0,4}\(?([A-Z])[\s,-]*([0-9]{1,2})\)?",
    re.IGNORECASE,
)
_BOX_MOVE = re.compile(r"\s*move\s*\(\s*(\w+)\s*,\s*([^(),]*(?:,[^(),]*)?)\)\s*")


def _moves(
    element: re.Pattern[str],
    written: Callable[[re.Match[str]], str],
    joined: Callable[[list[str]], str],
    between: re.Pattern[str] = BETWEEN_MOVES,
) -> Spelling:
    """Return the spelling of a sequence of moves."""

    def spelling(answer: str, entry: Mapping[str, Any]) -> str:
        found = read_sequence(plain(answer), element, between)
        return answer if found is None else joined([written(move) for move in found])

    return spelling


def _car_move(move: re.Match[str]) -> str:
    return f"{move[1].upper()}{move[2]}{move[3]}"


def _knight_move(move: re.Match[str]) -> str:
    color = "w" if move[1][0] in "wW" else "B"
    return f"{color},{move[2].upper()},{move[3].upper()}"


def _turn(move: re.Match[str]) -> str:
    """Write a turn without a number in front: `2R` is `Rw R'`."""
    turn = _PRIMES.sub("'", move[0])
    match = _TURN_OF_LAYERS.fullmatch(turn)
    if match is None:
        return turn.upper() if turn[0] in "xyz" else turn
    layer, face, wide, prime = match.groups()
    if layer == "1":
        return f"{face}{prime}"
    both, back = f"{face}w{prime}", "" if prime else "'"
    return both if wide else f"{both} {face}{back}"


def walk(answer: str, entry: Mapping[str, Any]) -> str:
    """Write moves of sokoban as letters; what may be several walks stays apart."""
    text = plain(answer)
    found = read_sequence(text, _DIRECTIONS, BETWEEN_STEPS)
    if found is None:
        return answer
    moves = [move[0].upper() for move in found]
    in_words = [move[0] for move in moves if move in _WORDS]
    if in_words and len(in_words) < len(moves):
        return answer
    is_list = found[0].string != text
    between = [text[a.end() : b.start()] for a, b in pairwise(found)]
    gaps = ["" for _ in between] if is_list else between
    return " ".join(walks_of(in_words or moves, gaps))


def point(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a point of the board as its letter and number."""
    match = _POINT.fullmatch(answer)
    return f"{match[1].upper()}{match[2]}" if match else answer


def box_plan(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a plan of boxnet as JSON, one space behind the comma of a move."""
    try:
        steps = read_value(plain(answer))
    except ValueError:
        return answer
    if not isinstance(steps, list) or not all(isinstance(s, dict) for s in steps):
        return answer
    return json.dumps(
        [{agent: _box_move(action) for agent, action in s.items()} for s in steps]
    )


def _box_move(action: Any) -> Any:
    match = _BOX_MOVE.fullmatch(action) if isinstance(action, str) else None
    return action if match is None else f"move({match[1]}, {match[2].strip()})"


SPELLINGS: Mapping[str, Spelling] = {
    "boxnet": box_plan,
    "knight_swap": _moves(_KNIGHT_MOVE, _knight_move, json.dumps),
    "quantum_lock": _moves(
        _PRESS, lambda press: press[1].upper(), " \u2192 ".join, BETWEEN_STEPS
    ),
    "rubiks_cube": _moves(_TURN, _turn, " ".join, _BETWEEN_TURNS),
    "rush_hour": _moves(_CAR_MOVE, _car_move, " ".join),
    "sokoban": walk,
    "tower_of_hanoi": _moves(
        _DISK_MOVE,
        lambda move: f"Move disk {move[1]} from Peg {move[2]} to Peg {move[3]}",
        "\n".join,
    ),
    "tsumego": of_short_text(point),
}
"""Task to its spelling."""
