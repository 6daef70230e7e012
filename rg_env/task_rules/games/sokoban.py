"""Moves of sokoban, which may be one walk or several.

The library plays every letter it finds. Behind a solution further moves often change
nothing, so a right walk and a wrong one beside it score 1.0. What stands between two
moves says where a walk ends: where it is something else than between most of them, and
behind each piece of several letters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from rg_env.task_rules.reading.filler_words import is_filler_beside
from rg_env.task_rules.reading.lists import BETWEEN_STEPS, plain, read_sequence
from rg_env.task_rules.rules import (
    Entry,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

MAX_WALKS = 100
"""A correct answer is one walk, perhaps in lines of some dozen letters."""

_MOVES = re.compile(r"\b[LRUD]+\b")
_MOVES_AND_ARROWS = re.compile(rf"{_MOVES.pattern}|->|→")
_PARTING = frozenset("\n,;>→-[](){}")


def walks_of(moves: Sequence[str], between: Sequence[str]) -> list[str]:
    """Return the walks that moves make, given the text between each two of them.

    Moves are letters, or pieces of several; at least one.
    """
    if any(len(move) > 1 for move in moves):
        return list(moves)
    gaps = ["".join(sign for sign in gap if sign in _PARTING) for gap in between]
    usual = Counter(gaps).most_common(1)[0][0] if gaps else ""
    walks = [moves[0]]
    for gap, move in zip(gaps, moves[1:], strict=True):
        if gap == usual:
            walks[-1] += move
        else:
            walks.append(move)
    return walks


def _score_walk(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score moves with filler words beside them, and not one solution beside others."""
    found = list(_MOVES.finditer(answer))
    if not found or not is_filler_beside(_MOVES_AND_ARROWS, answer):
        return 0.0
    between = [answer[a.end() : b.start()] for a, b in pairwise(found)]
    walks = walks_of([move[0] for move in found], between)
    if len(walks) > MAX_WALKS:
        return 0.0
    if len(walks) > 1 and any(library(walk) == 1.0 for walk in walks):
        return 0.0
    return library(answer)


_DIRECTIONS = re.compile(r"up\b|down\b|left\b|right\b|[udlr]+\b", re.IGNORECASE)
_WORDS = frozenset({"UP", "DOWN", "LEFT", "RIGHT"})


def _as_letters(answer: str, entry: Entry) -> str:
    """Write moves as letters; what may be several walks stays apart."""
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


RULES = TaskRules(
    "sokoban",
    notation=_as_letters,
    fix=ScorerFix(
        scorer_sha256="6f54760afe6bed92faa5bb29ce3948b8e8e965109801cbdff69036d7a53d6a67",
        fault="Ignores everything but the letters of moves, even a second answer.",
        score=_score_walk,
    ),
    level_repair=LevelRepair(
        {0: {"min_boxes": 3, "max_boxes": 4}},
        "level 0 asks for the default's 4 to 10 boxes on a board of 6 by 6, and none is"
        " found in 20 s",
    ),
)
