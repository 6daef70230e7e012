"""shortest_path: directions."""

from __future__ import annotations

import re

from rg_env.task_rules.common_answers import seldom_answered
from rg_env.task_rules.reading.lists import BETWEEN_STEPS, list_of
from rg_env.task_rules.rules import Entry, LevelRepair, TaskRules

_DIRECTION = re.compile(
    r"(?:(?:go|move)\s+)?(up|down|left|right|[udlr])\b", re.IGNORECASE
)
_IN_FULL = {"u": "up", "d": "down", "l": "left", "r": "right"}


def _in_full(step: re.Match[str]) -> str:
    word = step[1].lower()
    return _IN_FULL.get(word, word)


_AS_STEPS = list_of(_DIRECTION, " ".join, BETWEEN_STEPS, _in_full)


def _directions(answer: str, entry: Entry) -> str:
    """Write a path as directions with spaces; `infeasible` in any case."""
    lowered = answer.lower()
    return lowered if lowered == "infeasible" else _AS_STEPS(answer, entry)


RULES = TaskRules(
    "shortest_path",
    notation=_directions,
    # 38 of 100 at the defaults.
    item_checks=(seldom_answered({"infeasible": 3}),),
    level_repair=LevelRepair(
        {level: {"p_blocked": 0.3} for level in range(4)},
        "with the default's two blocked cells in five there is no path in 51 to 72 of"
        " 100 boards of these sizes",
    ),
)
