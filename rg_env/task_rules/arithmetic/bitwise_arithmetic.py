"""bitwise_arithmetic: a number in hexadecimal digits."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.notation import of_short_text
from rg_env.task_rules.reading.numbers import with_plain_subscripts
from rg_env.task_rules.rules import Entry, TaskRules

_HEX = re.compile(
    r"(?P<sign>[+-]?)\s?\(?(?P<digits>0[xX][0-9a-fA-F]+|[0-9]*[a-fA-F][0-9a-fA-F]*)\)?"
    r"(?:_\{?16\}?)?"
)


def _with_0x(answer: str, entry: Entry) -> str:
    """Write `0x` before hexadecimal digits that are no decimal ones."""
    text = with_plain_subscripts(answer)
    match = _HEX.fullmatch(text)
    if match is None:
        return answer
    digits = match["digits"].lower()
    return match["sign"] + (digits if digits.startswith("0x") else f"0x{digits}")


RULES = TaskRules("bitwise_arithmetic", notation=of_short_text(_with_0x))
