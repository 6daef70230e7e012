"""Guesses that other questions of a task and their right answers teach.

Each looks at a sign on the surface alone: how a question is worded, which form of
answer it asks for in its last sentence, and which numbers stand in it.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

Seen = Sequence[tuple[str, str]]
"""Questions of the same task and level, each with a right answer."""

_VARYING = re.compile(r"\"[^\"]*\"|'[^'\n]*'|\b[A-Z]\w*|\d+")
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+")
_DIGITS = re.compile(r"\d+")
_kept = functools.lru_cache(maxsize=4096)


@_kept
def _wording(question: str) -> str:
    """Return a question without its names, numbers and quoted texts."""
    return _VARYING.sub("#", question)


@_kept
def _asked_form(question: str) -> str:
    """Return the last sentence, which mostly says how the answer is written."""
    return _wording(_SENTENCE_END.split(question.strip())[-1])


_NAME = re.compile(r"\b[A-Z]\w*")


@_kept
def _asked_places(question: str) -> str:
    """Return at which places of a story the names first stand that it asks for."""
    *story, asked = _SENTENCE_END.split(question.partition("?")[0].strip())
    names = list(dict.fromkeys(_NAME.findall(" ".join(story))))
    return str([names.index(n) for n in _NAME.findall(asked) if n in names])


def _commonest(golds: Sequence[str]) -> str | None:
    return Counter(golds).most_common(1)[0][0]


def _median(golds: Sequence[str]) -> str | None:
    """Return the middle one of those whose commonest form has numbers."""
    forms = [_DIGITS.sub("0", gold) for gold in golds]
    form = Counter(forms).most_common(1)[0][0]
    if "0" not in form:
        return None
    alike = [gold for gold, other in zip(golds, forms, strict=True) if other == form]
    alike.sort(key=lambda gold: [int(number) for number in _DIGITS.findall(gold)])
    return alike[len(alike) // 2]


def _constant_of_kind(
    kind_of: Callable[[str], str], choose: Callable[[Sequence[str]], str | None]
) -> Callable[..., str | None]:
    def guess(question: str, seen: Seen, *_: object) -> str | None:
        kind = kind_of(question)
        # To remember the answer to the same question is no guess.
        alike = [(other, gold) for other, gold in seen if kind_of(other) == kind]
        golds = [gold for other, gold in alike if other != question]
        return choose(golds) if golds else None

    return guess


_NUMBER = re.compile(r"-?\d{1,9}(?![\d.])")
_NUMBER_LIST = re.compile(r"\[(-?\d{1,9}(?:, ?-?\d{1,9})*)\]")
_SUMS: Mapping[str, Callable[[list[int]], int]] = {
    "largest + 1": lambda numbers: max(numbers) + 1,
    "largest - 1": lambda numbers: max(numbers) - 1,
    "largest - smallest": lambda numbers: max(numbers) - min(numbers),
    "half of the largest": lambda numbers: max(numbers) // 2,
    "last + 1": lambda numbers: numbers[-1] + 1,
    "sum": sum,
    "count": len,
    "sum of the last two": lambda numbers: numbers[-2] + numbers[-1],
    "difference of the last two": lambda numbers: numbers[-2] - numbers[-1],
    "product of the last two": lambda numbers: numbers[-2] * numbers[-1],
    "last step again": lambda numbers: 2 * numbers[-1] - numbers[-2],
    "twice the last": lambda numbers: 2 * numbers[-1],
    "largest": max,
    "smallest": min,
}
_LISTS: Mapping[str, Callable[[list[int]], list[int]]] = {
    "rising": sorted,
    "falling": lambda numbers: sorted(numbers, reverse=True),
    "reversed": lambda numbers: numbers[::-1],
    "without the first": lambda numbers: numbers[1:],
    "without repetitions": lambda numbers: list(dict.fromkeys(numbers)),
}


@_kept
def sums(question: str) -> Mapping[str, str]:
    """Return what can be computed of the numbers of a question without reading it."""
    numbers = [int(number) for number in _NUMBER.findall(question)]
    if len(numbers) < 2:
        return {}
    return {name: str(compute(numbers)) for name, compute in _SUMS.items()}


def list_sums(question: str) -> dict[str, str]:
    """Return the like for the numbers of the last list, as lists."""
    found = _NUMBER_LIST.findall(question)
    numbers = [int(number) for number in found[-1].split(",")] if found else []
    if len(numbers) < 2:
        return {}
    lists = {f"list, {name}": str(f(numbers)) for name, f in _LISTS.items()}
    return {**lists, **{f"list of {n}": f"[{f(numbers)}]" for n, f in _SUMS.items()}}


def _oftenest_right_sum(question: str, seen: Seen, *_: object) -> str | None:
    right = Counter(
        name
        for other, gold in seen
        if other != question
        for name, value in sums(other).items()
        if value == gold
    )
    return sums(question).get(right.most_common(1)[0][0]) if right else None


GUESSES: Mapping[str, Callable[..., str | None]] = {
    "sum of its numbers that is right oftenest": _oftenest_right_sum,
    "commonest answer to such a wording": _constant_of_kind(_wording, _commonest),
    "middle answer to such a wording": _constant_of_kind(_wording, _median),
    "commonest answer where such names are asked for": _constant_of_kind(
        _asked_places, _commonest
    ),
    "commonest answer of the form asked for": _constant_of_kind(
        _asked_form, _commonest
    ),
    "middle answer of the form asked for": _constant_of_kind(_asked_form, _median),
}
"""Name to guess, from a question and others with their right answers."""
