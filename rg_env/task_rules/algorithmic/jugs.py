"""jugs: moves of water."""

from __future__ import annotations

import json
import re

from rg_env.task_rules.reading.lists import BETWEEN_MOVES, list_of
from rg_env.task_rules.rules import (
    READABLE,
    Entry,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

_JUG_MOVE = re.compile(r"(?:fill|empty) [A-Z]|pour [A-Z]->[A-Z]")
_WRITTEN_MOVE = re.compile(
    r"(?P<verb>fill|empty)\s+(?:up\s+)?(?:jug\s+)?(?P<jug>[A-Z])\b"
    r"|pour\s+(?:from\s+)?(?:jug\s+)?(?P<source>[A-Z])\s*(?:\u2192|\bto\b|\binto\b)"
    r"\s*(?:jug\s+)?(?P<to>[A-Z])\b",
    re.IGNORECASE,
)


def _moves_of_jugs(answer: str, entry: Entry, library: LibraryScore) -> float:
    value = library(answer)
    if value <= READABLE:
        return value
    moves = json.loads(answer)
    plain = isinstance(moves, list) and all(
        _JUG_MOVE.fullmatch(" ".join(move.split())) for move in moves
    )
    return value if plain else READABLE


def _jug_move(move: re.Match[str]) -> str:
    if move["verb"]:
        return f"{move['verb'].lower()} {move['jug'].upper()}"
    return f"pour {move['source'].upper()}->{move['to'].upper()}"


RULES = TaskRules(
    "jugs",
    notation=list_of(_WRITTEN_MOVE, json.dumps, BETWEEN_MOVES, _jug_move),
    fix=ScorerFix(
        scorer_sha256="c012156723d643fa58eb8a1a41cd4b2698aefba5ba955f8912cef11f2c7f86e8",
        fault="Ignores whatever follows a move.",
        score=_moves_of_jugs,
    ),
    item_checks=(
        ItemCheck(
            "answer is that there is none, because the library searches with all jugs"
            " and solves with the first three",
            lambda entry: bool(entry["answer"] == '["No solution"]'),
            always=True,
        ),
    ),
    level_repair=LevelRepair(
        {level: {"num_jugs": 3} for level in (2, 3)},
        "levels 2 and 3 ask for 5 and 7 jugs; finding a puzzle takes seconds to"
        " minutes, and its solver sees three jugs alone, so that the answers are wrong",
    ),
)
