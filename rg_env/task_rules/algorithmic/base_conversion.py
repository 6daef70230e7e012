"""base_conversion: a number in another base."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.notation import of_short_text
from rg_env.task_rules.reading.numbers import with_plain_subscripts
from rg_env.task_rules.rules import Entry, TaskRules

_TARGET = re.compile(r" to (?:base-(?P<base>\d+)|(?P<name>binary|hexadecimal))\s*$")
_PREFIXES = {2: "0b", 8: "0o", 16: "0x"}
_NAMES = {"binary": 2, "hexadecimal": 16}
_GROUPED = re.compile(
    r"[0-9a-z]{1,3}([ _,])[0-9a-z]{3}(?:\1[0-9a-z]{3})*"
    r"|[0-9a-z]{1,4}([ _])[0-9a-z]{4}(?:\2[0-9a-z]{4})*"
)
_BASE_BEHIND = re.compile(
    r"\s*(?:_\s*\{?\s*(?:\\text\{\s*)?(?P<sub>\d+)\s*\}{0,2}"
    r"|\(?\s*(?:in )?base[- ]?(?P<base>\d+)\s*\)?)$"
)


def _without_base(answer: str, entry: Entry) -> str:
    """Take off what only says again in which base a number is written."""
    target = _TARGET.search(entry.get("question", "").rstrip())
    gold = entry.get("answer")
    if target is None or not isinstance(gold, str):
        return answer
    base = _NAMES.get(target["name"] or "") or int(target["base"] or 0)
    digits = with_plain_subscripts(answer)
    behind = _BASE_BEHIND.search(digits)
    if behind and int(behind["sub"] or behind["base"]) == base:
        digits = digits[: behind.start()].strip()
        digits = digits.removeprefix("(").removesuffix(")")
    prefix = _PREFIXES.get(base)
    if prefix and digits.startswith(prefix):
        digits = digits[len(prefix) :]
    if _GROUPED.fullmatch(digits):
        digits = re.sub("[ _,]", "", digits)
    digits = digits.removeprefix("+")
    return gold if digits.lstrip("0") == gold.lstrip("0") and digits else answer


RULES = TaskRules("base_conversion", notation=of_short_text(_without_base))
