"""shortest_path: directions."""

from __future__ import annotations

import re

from rg_env.task_rules.common_answers import seldom_answered
from rg_env.task_rules.reading.lists import BETWEEN_STEPS, plain, read_sequence
from rg_env.task_rules.rules import Entry, LevelRepair, TaskRules

_DIRECTION = re.compile(
    r"(?:(?:go|move)\s+)?(up|down|left|right|[udlr])\b", re.IGNORECASE
)
_IN_FULL = {"u": "up", "d": "down", "l": "left", "r": "right"}


def directions(answer: str, entry: Entry) -> str:
    """Write a path as directions with spaces; `infeasible` in any case."""
    if answer.lower() == "infeasible":
        return "infeasible"
    found = read_sequence(plain(answer), _DIRECTION, BETWEEN_STEPS)
    if found is None:
        return answer
    words = [step[1].lower() for step in found]
    return " ".join(_IN_FULL.get(word, word) for word in words)


RULES = TaskRules(
    "shortest_path",
    notation=directions,
    item_checks=(
        # 38 of 100 at the defaults.
        seldom_answered({"infeasible": 3}),
    ),
    level_repair=LevelRepair(
        {level: {"p_blocked": 0.3} for level in range(4)},
        "with the default's two blocked cells in five there is no path in 51 to 72 of"
        " 100 boards of these sizes",
    ),
)
