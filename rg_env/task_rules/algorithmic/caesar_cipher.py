"""caesar_cipher: a decrypted text."""

from __future__ import annotations

from rg_env.task_rules.reading.words import in_any_case
from rg_env.task_rules.rules import LevelRepair, TaskRules

RULES = TaskRules(
    "caesar_cipher",
    notation=in_any_case,
    level_repair=LevelRepair(
        {level: {"max_rotation": 25} for level in (2, 3)},
        "levels 2 and 3 ask for rotations up to 50, and an alphabet has 25",
    ),
)
