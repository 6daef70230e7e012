"""string_splitting: counts of machines and parts; of blocks in string_synthesis."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.lists import list_of, plain
from rg_env.task_rules.reading.values import read_value
from rg_env.task_rules.rules import Entry, Notation, TaskRules

_COUNT = re.compile(r"[0-9]{1,6}\b")
_BULLETS = re.compile("^[ \t]*[-*\u2022][ \t]+", re.MULTILINE)


def counts_of(names: tuple[str, ...]) -> Notation:
    """Return the notation of counts that may have their names beside them."""
    kind = r"(?:units?\s+of\s+|machines?\s+|parts?\s+|blocks?\s+)*"
    gap = r"(?:[\s,;|]|\band\b)+"
    behind = gap.join(rf"([0-9]{{1,6}})\s*{kind}{re.escape(name)}" for name in names)
    before = gap.join(
        rf"{kind}{re.escape(name)}\s*[:=\u2192]\s*([0-9]{{1,6}})" for name in names
    )
    forms = [re.compile(form, re.IGNORECASE) for form in (behind, before)]
    unnamed = list_of(_COUNT, " ".join)

    def notation(answer: str, entry: Entry) -> str:
        text = _BULLETS.sub("", plain(answer))
        for form in forms:
            match = form.fullmatch(text)
            if match is not None:
                return " ".join(match.groups())
        try:
            named = read_value(answer)
        except ValueError:
            named = None
        if isinstance(named, dict) and sorted(named) == sorted(names):
            return " ".join(str(named[name]) for name in names)
        return unnamed(answer, entry)

    return notation


RULES = TaskRules("string_splitting", notation=counts_of(tuple("ABCXYZ")))
