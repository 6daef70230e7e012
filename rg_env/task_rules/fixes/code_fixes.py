"""Fixes of the category code. bf is fixed with the base scorer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from rg_env.task_rules.reading.talk import is_talk, is_wrapper
from rg_env.task_rules.scorer_fix import Entry, LibraryScore, ScorerFix

MAX_GROWTH = 2
"""How much longer than the gold answer a JSON object may be that is compared with it.

Behind twice the length (and a little) nothing is similar, and the comparison is slow.
"""

_FENCE = re.compile(r"```(?:json|python)?")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object of which no name is given twice."""
    built = dict(pairs)
    if len(built) != len(pairs):
        raise ValueError("a name is given twice")
    return built


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a JSON value with the path to each."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _numbers(part, f"{path}/{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _numbers(part, f"{path}/{index}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def _share_of_right_signs(value: Any, gold: Any) -> float:
    """Return the share of the numbers of `value` that have the sign of the gold one."""
    signs = {path: number < 0 for path, number in _numbers(gold)}
    found = [(path, number < 0) for path, number in _numbers(value)]
    right = sum(signs.get(path, sign) == sign for path, sign in found)
    return right / len(found) if found else 1.0


def _object_alone(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score codeio: one object, each name once, nothing but talk around it.

    The library's similarity compares numbers without their signs, so it is paid in
    proportion to the numbers with the right sign.
    """
    gold = entry["answer"].strip()
    if answer.strip() == gold or "{" not in answer or "}" not in answer:
        return library(answer)
    start, end = answer.index("{"), answer.rindex("}") + 1
    around = _FENCE.sub("", answer[:start] + " " + answer[end:])
    too_long = end - start > MAX_GROWTH * len(gold) + 200
    if too_long or not is_talk(around):
        return 0.0
    try:
        value = json.loads(answer[start:end], object_pairs_hook=_once_each)
        share = _share_of_right_signs(value, json.loads(gold))
    except (ValueError, RecursionError):
        return library(answer) if is_wrapper(answer, gold) else 0.0
    return library(answer) * share


def _other_then_gold(entry: Entry) -> str:
    """Give each name of the gold object twice, first with another value."""
    gold = entry["answer"].strip()
    if not gold.startswith("{") or gold == "{}":
        return f'{{"a": 1}} {gold}'
    others = json.dumps(dict.fromkeys(json.loads(gold), 0))
    return f"{others[:-1]}, {gold[1:]}"


FIXES: tuple[ScorerFix, ...] = (
    ScorerFix(
        task="codeio",
        scorer_sha256="11f228ca05744a014b05fc446fbcfaa21ba4d21ab1746eb2f41509840aa14351",
        fault=(
            "Pays for a right object with another one beside it or with every name"
            " given twice, and for numbers with the wrong sign."
        ),
        proof=_other_then_gold,
        proof_pays=0.7,
        score=_object_alone,
    ),
)
