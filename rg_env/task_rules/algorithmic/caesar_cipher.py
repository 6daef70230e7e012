"""caesar_cipher: a decrypted text."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.words import in_any_case
from rg_env.task_rules.rules import Entry, ItemCheck, LevelRepair, TaskRules

_MAX_CHARS = 2_000
_PUNCTUATION = re.compile(r"[.,;:!?]+(?=\s|$)")


def _letters_and_spaces(answer: str, entry: Entry) -> str:
    """Take off the case and the punctuation, of which the encrypted text has none."""
    bare = _PUNCTUATION.sub("", answer) if len(answer) < _MAX_CHARS else answer
    return in_any_case(bare, entry)


RULES = TaskRules(
    "caesar_cipher",
    notation=_letters_and_spaces,
    item_checks=(
        ItemCheck(
            "text has a letter such as \u00cb, which is shifted as if it were another",
            lambda entry: not entry["answer"].isascii(),
        ),
    ),
    level_repair=LevelRepair(
        {level: {"max_rotation": 25} for level in (2, 3)},
        "levels 2 and 3 ask for rotations up to 50, and an alphabet has 25",
    ),
)
