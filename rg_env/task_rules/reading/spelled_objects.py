"""Answers of JSON and answers that name each thing's value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rg_env.task_rules.reading.values import read_value
from rg_env.task_rules.rules import Notation as Spelling


def _is_same(value: Any, gold: Any) -> bool:
    """Say whether two values of JSON are equal; a number is no truth value."""
    if isinstance(value, bool) or isinstance(gold, bool):
        return value is gold
    if isinstance(value, dict) and isinstance(gold, dict):
        names = value.keys() == gold.keys()
        return names and all(_is_same(value[name], gold[name]) for name in gold)
    if isinstance(value, list) and isinstance(gold, list):
        return len(value) == len(gold) and all(map(_is_same, value, gold))
    return bool(value == gold)


def the_same_value(answer: str, entry: Mapping[str, Any]) -> str:
    """Return the right answer for one that writes the same value of JSON.

    A string is known without its quotes as well.
    """
    gold_text = entry["answer"]
    try:
        gold = json.loads(gold_text)
    except ValueError:
        return answer
    if isinstance(gold, str) and answer == gold:
        return str(gold_text)
    try:
        same = _is_same(read_value(answer), gold)
    except ValueError:
        return answer
    return str(gold_text) if same else answer


SPELLINGS: Mapping[str, Spelling] = {
    "codeio": the_same_value,
}
"""Task to its spelling."""
