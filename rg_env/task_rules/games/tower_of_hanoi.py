"""tower_of_hanoi: moves of disks."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.lists import (
    BETWEEN_MOVES,
    list_of,
    plain,
    read_sequence,
)
from rg_env.task_rules.rules import (
    Entry,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

_DISK_MOVE = re.compile(
    r"(?:move\s+)?(?:the\s+)?dis[kc]\s*([0-9]{1,4})\s*[:,]?\s*(?:from\s+)?"
    r"(?:(?:peg|rod)\s*)?([0-9]{1,4})\s*(?:to\b|\u2192)\s*(?:(?:peg|rod)\s*)?([0-9]{1,4})\b",
    re.IGNORECASE,
)


def _disk_move(move: re.Match[str]) -> str:
    return f"Move disk {move[1]} from Peg {move[2]} to Peg {move[3]}"


def _only_moves(answer: str, entry: Entry, library: LibraryScore) -> float:
    moves = read_sequence(plain(answer), _DISK_MOVE, BETWEEN_MOVES)
    value = 0.0 if moves is None else library(answer)
    return value if value in (0.0, 0.05) else 1.0  # 0.05: some disk is elsewhere


RULES = TaskRules(
    "tower_of_hanoi",
    notation=list_of(_DISK_MOVE, "\n".join, BETWEEN_MOVES, _disk_move),
    fix=ScorerFix(
        scorer_sha256="b526c662909b60dbaf24737c57d8bda3be5914c507a5b1a3a03118c322de0a72",
        fault=(
            "Ignores signs before a move, `~Move disk 1`; a solution that is not the"
            " shortest scores less, which the question does not ask for."
        ),
        score=_only_moves,
    ),
    level_repair=LevelRepair(
        {0: {"max_disks": 4}}, "level 0 has six different questions"
    ),
)
