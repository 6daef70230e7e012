"""Numbers, in the ways that their question leaves open.

A number that is the right one, exactly, is spelled as the right answer is. Around it
may stand what says a number and what is counted: `256 legs`.

Where a scorer rounds by itself, as the question asks, the number is only written
plainly, and what it is worth is the scorer's matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rg_env.task_rules.reading.notation import of_short_text
from rg_env.task_rules.reading.numbers import (
    as_number,
    read_number,
    without_chance,
)
from rg_env.task_rules.rules import Notation as Spelling

_PERCENT = re.compile(r"\s*(?:%|percent|per cent)$")


def as_probability(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a probability as a decimal or a fraction; percents are hundredths."""
    said = without_chance(answer.replace(r"\%", "%"))
    bare = _PERCENT.sub("", said)
    number = read_number(bare)
    if number is None:
        return answer
    if bare == said:
        return number.text
    if number.bottom is not None or "e" in number.text:
        return answer
    sign = "-" if number.text.startswith("-") else ""
    whole, _, rest = number.text.removeprefix("-").partition(".")
    digits = whole.zfill(3)
    return f"{sign}{digits[:-2]}.{digits[-2:]}{rest}"


_COUNTED = (
    "aiw     "
    "   largest_island    maze"
    " number_sequence  rectangle_count  self_reference"
    " "
)

_SPELLINGS: Mapping[str, Spelling] = {
    **dict.fromkeys(_COUNTED.split(), as_number),
    "coin_flip": as_probability,
}

SPELLINGS: Mapping[str, Spelling] = {
    task: of_short_text(spelling) for task, spelling in _SPELLINGS.items()
}
"""Task to its spelling."""
