"""The rules of tasks that have several right answers, played without a scorer.

Most are the solvers that judge the library's own answers (`tools/gold_solvers/`), which
read the question. A rule says whether an answer without formatting is right, False also
for what it cannot read, None where it does not know. What the rules pass as right may
be scored; what they reject may not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import trunc
from typing import Any

from sympy import real_roots
from sympy.parsing.sympy_parser import parse_expr

from tools import gold_solvers
from tools.answer_texts.right_answers import frees_the_car
from tools.answer_texts.sampled_items import SampledItem

Metadata = Mapping[str, Any]
Rule = Callable[[Metadata, str], bool]


def _to_what_is_shown(metadata: Metadata, answer: str) -> bool:
    try:
        return round(float(answer.replace(",", "")), 5) == round(
            float(metadata["solution"]), 5
        )
    except ValueError:
        return False


def _same_numbers(metadata: Metadata, answer: str) -> bool:
    try:
        given = sorted(float(part) for part in answer.split(","))
    except ValueError:
        return False
    gold = sorted(map(float, metadata["real_solutions"]))
    return given == gold or (len(given) == len(gold) and _cut_off(metadata, given))


def _cut_off(metadata: Metadata, given: Sequence[float]) -> bool:
    """Say whether roots are rounded to four places, or down, as the question says."""
    polynomial = parse_expr(metadata["polynomial_expr"])
    roots = sorted({float(root) for root in real_roots(polynomial)})
    places = [{round(r, 4), trunc(r * 10_000) / 10_000} for r in roots]
    return len(roots) == len(given) and all(
        number in right for number, right in zip(given, places, strict=True)
    )


def _same_factors(metadata: Metadata, answer: str) -> bool:
    parts = [part.strip() for part in answer.split("\N{MULTIPLICATION SIGN}")]
    parts = [part for part in parts if part]
    if not all(part.isdecimal() for part in parts):
        return False
    return sorted(map(int, parts)) == sorted(metadata["factors"])


_ROLE = re.compile(r"(\w+) is\W+(?:is )?(?:an?\W+)?(\w+)")


def _roles(metadata: Metadata, answer: str) -> bool:
    """Say whether every inhabitant is given the right role and no other one."""
    terms, names = metadata["knight_knave_terms"], set(map(str, metadata["names"]))
    words = {terms["knight"]: True, terms["knave"]: False}
    given = _ROLE.findall(answer)
    rest = set(re.findall(r"\w+", _ROLE.sub(" ", answer)))
    if not rest <= names | {"a", "an", "and", "but", "is", "while"}:
        return False
    said = {(name, words.get(role)) for name, role in given}
    return said == set(zip(metadata["names"], metadata["solution"], strict=True))


UNKNOWN = frozenset(("boxnet", "propositional_logic", "rubiks_cube", "word_ladder"))
"""Tasks whose other right answers nobody tells here."""

RULES: Mapping[str, Rule] = {
    "knights_knaves": _roles,
    "number_format": _to_what_is_shown,
    "polynomial_equations": _same_numbers,
    "prime_factorization": _same_factors,
    "rush_hour": lambda metadata, answer: frees_the_car(
        metadata["board_config"], answer
    ),
}
"""Task to the rule that reads the metadata of its items."""

_PLAYED = """
    countdown intermediate_integration polynomial_multiplication puzzle24
    simple_integration cryptarithm group_anagrams palindrome_generation
    palindrome_partitioning kakurasu n_queens shortest_path sokoban graph_color jugs
    quantum_lock tower_of_hanoi codeio knight_swap leg_counting manipulate_matrix
    pool_matrix power_function string_synthesis
"""
SOLVERS = {task: gold_solvers.SOLVERS[task] for task in _PLAYED.split()}
"""Task to the solver that judges any answer to it."""

SEVERAL = UNKNOWN | set(RULES) | set(SOLVERS)
"""Every other task has one right answer."""


def is_right(item: SampledItem, answer: str) -> bool | None:
    """Say whether an answer that is no notation of the right one is right as well."""
    if item.task in UNKNOWN:
        return None
    if item.task in RULES:
        rule, metadata = RULES[item.task], item.entry["metadata"]
        # A rule that cannot read the right answer knows nothing of others.
        return rule(metadata, answer.strip()) if rule(metadata, item.right) else None
    if item.task not in SOLVERS or not _passes(item, item.right):
        return None if item.task in SOLVERS else False
    presses = [len(re.findall(r"[^\s→]", text)) for text in (answer, item.right)]
    if item.task == "quantum_lock" and presses[0] > presses[1]:
        return False
    return _passes(item, answer.strip())


def _passes(item: SampledItem, answer: str) -> bool:
    try:
        verdict = SOLVERS[item.task](item.entry["question"], answer)
    except Exception:  # noqa: BLE001 - a solver that cannot read an answer says so
        return False
    return verdict != "refuted"
