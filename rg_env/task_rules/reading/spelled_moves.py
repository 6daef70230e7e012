"""Moves of puzzles: with arrows, commas or lines between them, numbered, as a list."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from rg_env.task_rules.reading.moves import moves_of
from rg_env.task_rules.reading.notation import Spelling

_JUG_MOVE = re.compile(
    r"(?P<verb>fill|empty)\s+(?:up\s+)?(?:jug\s+)?(?P<jug>[A-Z])\b"
    r"|pour\s+(?:from\s+)?(?:jug\s+)?(?P<source>[A-Z])\s*(?:\u2192|\bto\b|\binto\b)"
    r"\s*(?:jug\s+)?(?P<to>[A-Z])\b",
    re.IGNORECASE,
)


def _jug_move(move: re.Match[str]) -> str:
    if move["verb"]:
        return f"{move['verb'].lower()} {move['jug'].upper()}"
    return f"pour {move['source'].upper()}->{move['to'].upper()}"


SPELLINGS: Mapping[str, Spelling] = {
    "jugs": moves_of(_JUG_MOVE, _jug_move, json.dumps),
}
"""Task to its spelling."""
