"""Answers that are one thing, said in a few more words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rg_env.answers.spellings.spelling import Spelling
from rg_env.answers.spellings.written_lists import without_label
from rg_env.answers.undressing import undressing

MAX_CHARS = 80
"""Longer than any of these phrases; the expressions are not linear."""

MAX_LABELS = 4

_LIGHT = re.compile(
    r"(?:the\s+)?(?:detector(?:'s)?\s+)?(?:light\s+)?(?:status\b\s*)?"
    r"(?:is|will\s+be|turns|will\s+turn|stays|will\s+stay)?\s*:?\s*"
    r"(on|off|undetermined)",
    re.IGNORECASE,
)
_POINT = re.compile(
    r"(?:(?:black|the|best|move|plays?|stone|at|on|to|is)\b[\s:,-]*){0,8}"
    r"\(?([A-Z])[\s,-]*([0-9]{1,2})\)?",
    re.IGNORECASE,
)


def light(answer: str, entry: Mapping[str, Any]) -> str:
    """Write the state of the light as one word."""
    match = _LIGHT.fullmatch(answer) if len(answer) <= MAX_CHARS else None
    return match[1].lower() if match else answer


def point(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a point of the board as its letter and number."""
    match = _POINT.fullmatch(answer) if len(answer) <= MAX_CHARS else None
    return f"{match[1].upper()}{match[2]}" if match else answer


def labelled(answer: str, entry: Mapping[str, Any]) -> str:
    """Take off what announces a text, `Final string:`, and the dress behind it."""
    gold = entry["answer"]
    if ":" in gold:
        return answer
    undress = undressing(gold)
    for _ in range(MAX_LABELS):
        text = without_label(answer)
        if text == answer:
            break
        answer = undress(text)
    return answer


_ANNOUNCED = (
    "color_cube_rotation",
    "emoji_mystery",
    "family_relationships",
    "needle_haystack",
    "palindrome_generation",
    "spell_backward",
    "string_manipulation",
    "zebra_puzzles",
)

SPELLINGS: Mapping[str, Spelling] = {
    "acre": light,
    "tsumego": point,
    **dict.fromkeys(_ANNOUNCED, labelled),
}
"""Task to its spelling."""
