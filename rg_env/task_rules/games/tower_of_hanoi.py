"""tower_of_hanoi: moves of disks."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.lists import BETWEEN_MOVES, list_of
from rg_env.task_rules.rules import LevelRepair, TaskRules

_DISK_MOVE = re.compile(
    r"(?:move\s+)?(?:the\s+)?dis[kc]\s*([0-9]{1,4})\s*[:,]?\s*(?:from\s+)?"
    r"(?:(?:peg|rod)\s*)?([0-9]{1,4})\s*(?:to\b|\u2192)\s*(?:(?:peg|rod)\s*)?([0-9]{1,4})\b",
    re.IGNORECASE,
)


def _disk_move(move: re.Match[str]) -> str:
    return f"Move disk {move[1]} from Peg {move[2]} to Peg {move[3]}"


RULES = TaskRules(
    "tower_of_hanoi",
    notation=list_of(_DISK_MOVE, "\n".join, BETWEEN_MOVES, _disk_move),
    level_repair=LevelRepair(
        {0: {"max_disks": 4}}, "level 0 has six different questions"
    ),
)
