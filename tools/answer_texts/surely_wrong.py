"""Whether an answer is wrong, told without a scorer.

It is compared with the right answer after formatting and notation are taken out of
both. Where a task has one right answer, what still differs is wrong. Where it has
several, the rules of the task decide: most are the solvers that judge the library's own
answers (`tools/gold_solvers/`), which read the question. Where none is written down,
nothing is known.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import trunc
from typing import Any

from sympy import real_roots
from sympy.parsing.sympy_parser import parse_expr

from tools import gold_solvers
from tools.answer_texts.sampled_items import SampledItem
from tools.gold_solvers.boards import frees_the_car

Metadata = Mapping[str, Any]
Rule = Callable[[Metadata, str], bool]


def _to_what_is_shown(metadata: Metadata, answer: str) -> bool:
    shown = float(metadata["solution"])
    return round(float(answer.replace(",", "")), 5) == round(shown, 5)


def _same_roots(metadata: Metadata, answer: str) -> bool:
    """Say whether roots are rounded to four places, or down, as the question says."""
    given = sorted(map(float, answer.split(",")))
    if given == sorted(map(float, metadata["real_solutions"])):
        return True
    polynomial = parse_expr(metadata["polynomial_expr"])
    roots = sorted({float(root) for root in real_roots(polynomial)})
    places = [{round(r, 4), trunc(r * 10_000) / 10_000} for r in roots]
    return len(roots) == len(given) and all(map(set.__contains__, places, given))


def _same_factors(metadata: Metadata, answer: str) -> bool:
    parts = map(str.strip, answer.split("\N{MULTIPLICATION SIGN}"))
    return sorted(map(int, filter(None, parts))) == sorted(metadata["factors"])


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
    "polynomial_equations": _same_roots,
    "prime_factorization": _same_factors,
    "rush_hour": frees_the_car,
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
    if item.task not in SEVERAL:
        return False
    # Who cannot read the right answer knows nothing of others.
    if item.task in UNKNOWN or not _passes(item, item.right):
        return None
    return _passes(item, answer.strip())


def _passes(item: SampledItem, answer: str) -> bool:
    try:
        if item.task in RULES:
            return RULES[item.task](item.entry["metadata"], answer)
        return SOLVERS[item.task](item.entry["question"], answer)
    except Exception:  # noqa: BLE001 - what cannot be read raises anything
        return False


CASE_MATTERS = (
    *("codeio", "emoji_mystery", "letter_jumble", "word_sequence_reversal"),
    "word_sorting",
)
"""Tasks whose questions show the case that is wanted. sentence_reordering and
spell_backward show one too, but their scorers compare in lower case on purpose."""

FILLERS = {
    "knights_knaves": frozenset({"is", "a", "an", "and"}),
    "tower_of_hanoi": frozenset({"move", "disk", "from", "to", "peg"}),
}
"""Task to the words of its answers that say nothing, whether they are there or not."""

_TERM = re.compile(r"(\+-|[+-]|)(\d+(?:\.\d*)?)(i?)")
_AROUND_WORDS = re.compile(r"(?<!\w)[^\w\s]+|[^\w\s]+(?!\w)")
_DAYS_BEFORE_CLOCK = re.compile(r"\s*days?,?\s*(?=\d+:)")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:e[+-]?\d{1,3})?")


def _number(text: str) -> str:
    return str(Fraction(text)) if len(text) < 300 else text


def _without_fillers(task: str, text: str) -> str:
    words = [w for w in re.findall(r"\w+", text) if w not in FILLERS[task]]
    if task == "tower_of_hanoi":
        return " ".join(words)
    said = [word for word, _ in itertools.groupby(words)]
    pairs = itertools.zip_longest(said[::2], said[1::2], fillvalue="")
    return " ".join(sorted(map(" ".join, pairs)))


def meaning(task: str, answer: str) -> str:
    """Return an answer without case, spacing and other ways to write its numbers."""
    text = answer if task in CASE_MATTERS else answer.casefold()
    text = " ".join(text.split()).strip(" .\"'`*$()\u00b0")
    if task in FILLERS:
        return _without_fillers(task, text)
    if task == "complex_arithmetic":  # the parts, in either order
        terms = _TERM.findall(text.replace(" ", ""))
        if "".join(map("".join, terms)) == text.replace(" ", ""):
            parts = (f"{s[-1:].strip('+')}{_number(n)}{i}" for s, n, i in terms)
            return " ".join(sorted(parts))
    is_denied = re.search("[\u2260\u00ac]|~~", text)
    if task == "sentence_reordering" and not is_denied:  # the order counts, no quote
        text = _AROUND_WORDS.sub("", text)
    if task == "time_intervals":  # `3 days, 4:05` and `3 4:05`
        text = _DAYS_BEFORE_CLOCK.sub(" ", text)
    if task in CASE_MATTERS:
        return re.sub(r"\s*,\s*", ",", text)
    text = _NUMBER.sub(lambda match: _number(match.group()), text)
    return re.sub(r"\s*([^\w\s])\s*", r"\1", text)


def is_wrong(item: SampledItem, answer: str) -> bool | None:
    """Say whether an answer without formatting is wrong; None where nobody knows."""
    if item.task == "letter_jumble" and item.right[:1].islower():
        answer = answer[:1].lower() + answer[1:]  # a sentence may begin with a capital
    if meaning(item.task, answer) == meaning(item.task, item.right):
        return False
    right = is_right(item, answer)
    return None if right is None else not right
