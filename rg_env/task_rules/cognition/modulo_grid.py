"""modulo_grid: grids of emoji."""

from __future__ import annotations

import re

from rg_env.task_rules.common_answers import seldom
from rg_env.task_rules.reading.grids import read_grid
from rg_env.task_rules.rules import Entry, LevelRepair, TaskRules

_SIGN_OF_EMOJI = re.compile("[\u2705\u274c\u2714\u2716]")


def _without_gaps(answer: str, entry: Entry) -> str:
    rows = read_grid(answer.replace("\ufe0f", ""), _SIGN_OF_EMOJI, compact=True)
    return answer if rows is None else "\n".join("".join(row) for row in rows)


def is_filled_by_one_sign(entry: Entry) -> bool:
    """Say whether the commoner sign of a grid is right in all of its blanks."""
    grid: str = entry["question"].partition("\n\n")[2]
    common = max("✅❌", key=grid.count)
    return bool(grid.replace("❔", common).strip() == entry["answer"].strip())


RULES = TaskRules(
    "modulo_grid",
    notation=_without_gaps,
    has_units=False,
    item_checks=(
        seldom(
            "blanks all hold the sign that is the commoner in its grid",
            is_filled_by_one_sign,
            one_in=6,  # 90 of 100 at the defaults, whose grids have one blank
        ),
    ),
    level_repair=LevelRepair(
        {
            0: {"max_holes": 10},
            1: {"max_target": 2, "max_holes": 15},
            2: {"max_holes": 20},
            3: {"max_holes": 40},
            4: {"max_holes": 50},
            5: {"max_holes": 100},
        },
        "level 1 asks for a target of at most 0, and the task wants 1; and with so few"
        " holes the commoner sign in all of them is right in up to 57 of 100 items",
    ),
)
