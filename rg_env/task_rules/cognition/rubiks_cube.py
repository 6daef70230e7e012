"""rubiks_cube: turns, their repetitions, and the way back from a scramble.

The library gives an example solution for cubes of 3 alone. Every scramble is undone by
its moves in reverse; only the notation needs care, because the scorer drops moves that
begin with a number. A turn of the second layer, `2R`, is therefore written `Rw R'`.
"""

from __future__ import annotations

import re

from rg_env.task_rules.reading.lists import list_of, repetitions
from rg_env.task_rules.rules import (
    Entry,
    Guard,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

_WRITTEN_TURN = re.compile(
    r"[0-9]*[LRUDBFMESXYZxyz]w?[0-9]?(?:['\u2018\u2019\u2032`\u00b4])?[0-9]?"
)
_PRIMES = re.compile("[\u2018\u2019\u2032`\u00b4]")
_TURN_OF_LAYERS = re.compile(r"(\d*)([LRDUBF])(w?)('?)")
_BETWEEN_TURNS = re.compile(r"(?:[\s,;()\u2192\"\u201c\u201d]|\.(?=\s|$))*")


def _without_number(layer: int, face: str, wide: str, prime: str) -> list[str]:
    """Write a turn of the first or second layer without a number in front."""
    if layer == 1:
        return [f"{face}{prime}"]
    both, back = f"{face}w{prime}", "" if prime else "'"
    return [both] if wide else [both, f"{face}{back}"]


def _turn(move: re.Match[str]) -> str:
    """Write a turn: `2R` is `Rw R'`."""
    turn = _PRIMES.sub("'", move[0])
    match = _TURN_OF_LAYERS.fullmatch(turn)
    if match is None or match[1] not in ("1", "2"):
        return turn.upper() if turn[0] in "xyz" else turn
    return " ".join(_without_number(int(match[1]), *match.group(2, 3, 4)))


_MAX_TURNS = 2_000
_REPEATED = re.compile(r"([^\d]*)(\d*)")


def _too_many_turns(answer: str, gold: str | None) -> str | None:
    matches = [_REPEATED.fullmatch(move) for move in answer.split()]
    # What begins with a number, `2R`, is one turn.
    numbers = [match[2] if match else "" for match in matches]
    turns = repetitions(numbers, max_digits=2)
    if turns is None:
        return "a move is repeated too often"
    return f"more than {_MAX_TURNS} moves" if turns > _MAX_TURNS else None


_TURN = re.compile(r"(?:[LRDUBF]w?|[XYZMES])'?[0-9]{0,2}")


def _every_turn(answer: str, entry: Entry, library: LibraryScore) -> float:
    return library(answer) if all(map(_TURN.fullmatch, answer.split())) else 0.0


def _undone(move: str) -> list[str] | None:
    """Return the moves that undo one, None where no numberless move reaches it."""
    match = _TURN_OF_LAYERS.fullmatch(move)
    if match is None:
        return None
    number, face, wide, prime = match.groups()
    layer = int(number) if number else 1 + bool(wide)
    back = "" if prime else "'"
    return _without_number(layer, face, wide, back) if layer in (1, 2) else None


def unscramble(moves: str) -> str | None:
    """Return the answer that undoes a scramble such as "R 2U' Lw".

    It has no leading numbers; None where a move turns a layer deeper than the second.
    """
    undone: list[str] = []
    for move in reversed(moves.split()):
        back = _undone(move)
        if back is None:
            return None
        undone += back
    return " ".join(undone)


def _of_cube(entry: Entry) -> str | None:
    metadata = entry["metadata"]
    solved: str | None = metadata.get("example_correct_answer")
    return unscramble(metadata["scramble_moves"]) if solved == "" else solved


RULES = TaskRules(
    "rubiks_cube",
    guard=Guard(
        "turns the cube a million times for R1000000, and lists the moves",
        "moves in words; the solver's own solutions have up to 200",
        _too_many_turns,
    ),
    notation=list_of(_WRITTEN_TURN, " ".join, _BETWEEN_TURNS, _turn),
    fix=ScorerFix(
        scorer_sha256="595c908d5970e222d5531cf03d315c8558168b7e2e0cf321c16bf71fd2246580",
        fault="Ignores numbers that stand alone and turns like `2R` and `U2'`.",
        score=_every_turn,
    ),
    level_repair=LevelRepair(
        {level: {"cube_size": 5} for level in (3, 4)},
        "level 3 asks for a cube of 6, whose inner layers no answer can turn, because"
        " the scorer drops moves that begin with a number; level 4 asks for 7, and the"
        " task takes 6 at most",
    ),
    solution=_of_cube,
)
