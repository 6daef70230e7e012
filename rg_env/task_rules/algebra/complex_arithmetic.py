"""complex_arithmetic: one complex number, scored by its distance."""

from __future__ import annotations

import re

from rg_env.task_rules.partial_credit import partial_credit
from rg_env.task_rules.reading.notation import of_short_text
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules

_DIGITS = r"\d{1,40}(?:,\d{3})*(?:\.\d{1,40})?"
_TERM = re.compile(
    rf"\s*(?P<sign>\+\s*-|[+-])?\s*(?:(?P<number>{_DIGITS})\s*\*?\s*(?P<unit>[ij])?|(?P<alone>[ij]))\s*"
)


def _without_calculation(answer: str, entry: Entry) -> str:
    """Return what stands behind `=` where the question's calculation is before it."""
    before, _, behind = answer.partition("=")
    said = "".join(before.split())
    asked = "".join(entry.get("question", "").split())
    is_asked = len(said) > 2 and asked.endswith(said) and "=" not in behind
    return behind.strip() if is_asked else answer


def _real_part_first(answer: str, entry: Entry) -> str:
    """Write a complex number with its real part first: `4i - 9` is `-9+4i`."""
    text = _without_calculation(answer.replace("\u2212", "-"), entry)
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    parts: dict[bool, str] = {}
    at = 0
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None or (at and not match["sign"]):
            return answer
        imaginary = bool(match["unit"] or match["alone"])
        if imaginary in parts:
            return answer
        digits = (match["number"] or "1").replace(",", "")
        parts[imaginary] = (match["sign"] or "+")[-1] + digits
        at = match.end()
    if not parts:
        return answer
    real, other = parts.get(False, "").removeprefix("+"), parts.get(True, "")
    if not other:
        return real
    return f"{real} {other[0]} {other[1:]}i" if real else f"{other.removeprefix('+')}i"


def _finite_number(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score the right number, and another one by its distance."""
    if "nan" in answer.lower().replace(" ", ""):
        return 0.0
    value = library(answer)
    return value if value == 1.0 else partial_credit(value)


RULES = TaskRules(
    "complex_arithmetic",
    notation=of_short_text(_real_part_first),
    fix=ScorerFix(
        scorer_sha256="210549e636793b5129afff648b6839427ba3311b5f521f7522198027dfa1784a",
        fault=(
            "`nan` scores 1.0, because min(1.0, NaN) is 1.0; a number that is off by a"
            " tenth scores 0.9."
        ),
        score=_finite_number,
    ),
)
