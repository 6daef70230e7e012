"""Whether formulas of the library contradict each other or say the same.

A formula is the set of the cases in which it holds, one bit each. The library writes
brackets around every pair, so that a formula is read from its inside to its outside.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping, Sequence

_NEGATION = re.compile(r"¬#([0-9a-f]+);")
_PAIR = re.compile(r"\(#([0-9a-f]+); (.) #([0-9a-f]+);\)")
_DONE = re.compile(r"#([0-9a-f]+);")

_JOINED: Mapping[str, Callable[[int, int, int], int]] = {
    "∧": lambda left, right, every: left & right,
    "∨": lambda left, right, every: left | right,  # noqa: RUF001
    "→": lambda left, right, every: left ^ every | right,
    "↔": lambda left, right, every: left ^ right ^ every,
}


def _written(cases: int) -> str:
    return f"#{cases:x};"


def _cases_of(formula: str, letters: Mapping[str, int], every: int) -> int:
    """Return the cases in which a formula holds.

    Raises:
        ValueError: It is none that the library writes.
    """
    text = "".join(
        _written(letters[sign]) if sign in letters else sign for sign in formula
    )
    before = ""
    while text != before:
        before = text
        text = _NEGATION.sub(lambda m: _written(int(m[1], 16) ^ every), text)
        text = _PAIR.sub(
            lambda m: _written(_JOINED[m[2]](int(m[1], 16), int(m[3], 16), every)), text
        )
    read = _DONE.fullmatch(text)
    if read is None:
        raise ValueError(f"no formula of the library: {formula!r}")
    return int(read[1], 16)


@functools.cache
def _cases_of_letter(at: int, count: int) -> int:
    return sum(1 << case for case in range(1 << count) if case >> at & 1)


def _cases_of_all(formulas: Sequence[str], letters: Sequence[str]) -> list[int]:
    count = len(letters)
    cases = {letter: _cases_of_letter(at, count) for at, letter in enumerate(letters)}
    every = (1 << (1 << count)) - 1
    return [_cases_of(formula, cases, every) for formula in formulas]


def share_left(formulas: Sequence[str], letters: Sequence[str]) -> float:
    """Return the share of the cases in which all formulas are true.

    Args:
        formulas: As the library writes them, at least one.
        letters: Those that may stand in them, at most ten.

    Returns:
        In [0, 1]: 0 where they contradict each other, 1 where each is a tautology.
    """
    left = functools.reduce(operator.and_, _cases_of_all(formulas, letters))
    return left.bit_count() / (1 << len(letters))


def is_stated(conclusion: str, formulas: Sequence[str], letters: Sequence[str]) -> bool:
    """Say whether a conclusion says the same as one of the formulas."""
    found, *stated = _cases_of_all([conclusion, *formulas], letters)
    return found in stated
