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

from rg_env.task_rules.reading.talk import is_talk_beside
from rg_env.task_rules.scorer_fix import Entry, LibraryScore

MAX_WALKS = 100
"""An honest answer is one walk, perhaps in lines of some dozen letters."""

_MOVES_AND_ARROWS = re.compile(r"\b[LRUD]+\b|->|→")
_MOVES = re.compile(r"\b[LRUD]+\b")
_PARTING = frozenset("\n,;>→-[](){}")


def walks_of(moves: Sequence[str], between: Sequence[str]) -> list[str]:
    """Return the walks that moves make, each as its letters.

    Args:
        moves: One letter each, or pieces of several; at least one.
        between: The text between each two of them.
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


def score_walk(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score sokoban: moves and otherwise talk, and not one solution beside others."""
    found = list(_MOVES.finditer(answer))
    if not found or not is_talk_beside(_MOVES_AND_ARROWS, answer):
        return 0.0
    between = [answer[a.end() : b.start()] for a, b in pairwise(found)]
    walks = walks_of([move[0] for move in found], between)
    if len(walks) > MAX_WALKS:
        return 0.0
    if len(walks) > 1 and any(library(walk) == 1.0 for walk in walks):
        return 0.0
    return library(answer)
