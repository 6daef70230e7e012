"""Rules of the logic tasks with questions in sentences."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    ItemCheck,
    LevelRepair,
    TaskRules,
)

# -- aiw -------------------------------------------------------------------------------

_BROTHERS = re.compile(
    r"(\w+) has .*?(\d+) brothers\b.*? does (\w+)'s brother have\?", re.DOTALL
)


def _has_other_women(entry: Entry) -> bool:
    """Return whether the answer is not the number of Matilda's female colleagues.

    She belongs to two circles. In the circle with the named woman, she has as many
    female colleagues as that woman. In the other circle, she is one of the man's female
    colleagues herself, and has one fewer than he. In every language, the question gives
    the numbers of men and women of the first circle, then those of the second.
    """
    if entry["metadata"]["task_type"] != "colleagues":
        return False
    _, first, _, second = map(int, re.findall("[0-9]+", entry["question"]))
    return first + second - 1 != int(entry["answer"])


def _has_no_such_brother(entry: Entry) -> bool:
    """Return whether the question asks for the brother of an only brother."""
    match = _BROTHERS.search(entry["question"])
    return match is not None and match[1] != match[3] and int(match[2]) == 1


AIW = TaskRules(
    "aiw",
    item_checks=(
        ItemCheck("answer leaves out women whom the question names", _has_other_women),
        ItemCheck(
            "question asks for the brother of an only brother",
            _has_no_such_brother,
        ),
    ),
)


# -- syllogisms ------------------------------------------------------------------------

# `follows` decides exactly whether a categorical statement follows from two others.
# Three terms make eight kinds of things, and a set of kinds is an integer of 8 bits. A
# universal statement says that none of certain kinds exists, a particular one that one
# of them does. If a conclusion can be refuted, the largest allowed set of kinds refutes
# it.

_STATEMENT = re.compile(r"(All|No|Some) (.+?) are (not )?(.+)")
_FORMAL = re.compile(r"([∀∃])x ∈ (.+): x ([∈∉]) (.+)")
_ALL_KINDS = 0b11111111
_KINDS_UNDER = (0b10101010, 0b11001100, 0b11110000)
"""The kinds of things under each of the three terms."""


@dataclasses.dataclass(frozen=True)
class _Statement:
    """A statement "All/No/Some ... are (not) ..."."""

    is_universal: bool
    terms: tuple[str, str]
    is_about_both: bool
    """Whether it is about things under both terms, or only under the first one."""

    def kinds(self, terms: Sequence[str]) -> int:
        """Return the kinds of things that do not exist by a universal statement.

        By a particular statement, a thing of one of these kinds exists.
        """
        subject, predicate = (_KINDS_UNDER[terms.index(t)] for t in self.terms)
        return subject & (predicate if self.is_about_both else _ALL_KINDS & ~predicate)


def _read_statement(text: str) -> _Statement:
    if formal := _FORMAL.fullmatch(text):  # in the multilingual version
        quantifier, subject, sign, predicate = formal.groups()
        is_universal = quantifier == "∀"
        return _Statement(
            is_universal, (subject, predicate), is_universal == (sign == "∉")
        )
    match = _STATEMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a categorical statement")
    quantifier, subject, negation, predicate = match.groups()
    is_about_both = quantifier == "No" or (quantifier == "Some" and not negation)
    return _Statement(quantifier != "Some", (subject, predicate), is_about_both)


def follows(premises: Sequence[str], conclusion: str, terms_exist: bool) -> bool:
    """Return whether a conclusion follows from premises with at most three terms.

    If `terms_exist` is true, every term applies to something.

    Example:
        >>> follows(["All a are b", "All b are c"], "Some a are c", terms_exist=True)
        True
    """
    statements = list(map(_read_statement, [*premises, conclusion]))
    terms = sorted({term for statement in statements for term in statement.terms})
    allowed = _ALL_KINDS
    # Sets of kinds; at least one kind of each set exists.
    existing = list(_KINDS_UNDER[: len(terms)]) if terms_exist else []
    for premise in statements[:-1]:
        kinds = premise.kinds(terms)
        if premise.is_universal:
            allowed &= ~kinds
        else:
            existing.append(kinds)
    kinds = statements[-1].kinds(terms)
    if statements[-1].is_universal:  # contradictory premises imply it, too
        return not allowed & kinds or any(not allowed & other for other in existing)
    return any(not allowed & ~kinds & other for other in existing)


def _verdicts(entry: Entry) -> set[bool]:
    """Return whether the conclusion follows, if terms may be empty and if not."""
    metadata = entry["metadata"]
    premises = [metadata["premise1"], metadata["premise2"]]
    return {
        follows(premises, metadata["conclusion"], terms_exist)
        for terms_exist in (False, True)
    }


SYLLOGISMS = TaskRules(
    "syllogism",
    item_checks=(
        ItemCheck(
            "answer is wrong in every interpretation",
            lambda entry: entry["metadata"]["is_valid"] not in _verdicts(entry),
        ),
        ItemCheck(
            "answer depends on whether its terms may be empty, which is not given",
            lambda entry: len(_verdicts(entry)) > 1,
        ),
    ),
    level_repair=LevelRepair(
        {0: {"allow_no": True}},
        "level 0 has only statements with All, and Yes is right for 93 of 100 items",
    ),
)


# -- zebra_puzzles ---------------------------------------------------------------------

# The library makes a puzzle by removing clues while the solution stays unique. It
# writes every clause of every clue as text, numbers its literals again for each of a
# hundred tries, and searches for two solutions.

Clause = tuple[int, ...]
UNSATISFIABLE = "UNSAT"


class _Numbers(dict[str, int]):
    """Literal to its number, assigned at the first access; "~" negates."""

    def __missing__(self, literal: str) -> int:
        is_negated = literal[0] == "~"
        number = -self[literal[1:]] if is_negated else len(self) + 1
        self[literal] = number
        return number


class _Numbering:
    """The clauses of one puzzle, with numbers as literals; each is built once.

    Attributes:
        constraints: The clauses that hold in every solution.
        excludes_known: The clause that only the known solution violates.
    """

    def __init__(self, puzzle: Any) -> None:
        self._numbers = _Numbers()
        self._by_clue: dict[Any, list[Clause]] = {}
        self.constraints = self._clauses(puzzle.constraints)
        self.excludes_known = tuple(
            -self._numbers[f"{element} {house}"]
            for element, house in puzzle.solution.items()
        )

    def _clauses(self, cnf: Iterable[Iterable[str]]) -> list[Clause]:
        return [tuple([self._numbers[text] for text in literals]) for literals in cnf]

    def clauses_of(self, clue: Any) -> list[Clause]:
        if clue not in self._by_clue:
            self._by_clue[clue] = self._clauses(clue.as_cnf())
        return self._by_clue[clue]


def _make_has_unique_solution(_original: Any) -> Callable[[Any, Iterable[Any]], bool]:
    """Return a `has_unique_solution` that calls the solver once.

    The clues hold in the solution that the puzzle was made from. So this solution is
    the only one if the solver finds none when it is excluded.
    """
    solve = importlib.import_module("pycosat").solve

    def has_unique_solution(puzzle: Any, clues: Iterable[Any]) -> bool:
        numbering = vars(puzzle).get("_numbering")
        if numbering is None:
            numbering = puzzle._numbering = _Numbering(puzzle)
        clauses = [*numbering.constraints, numbering.excludes_known]
        for clue in {*puzzle.clues, *clues}:
            clauses += numbering.clauses_of(clue)
        return bool(solve(clauses) == UNSATISFIABLE)

    return has_unique_solution


ZEBRA_PUZZLES = TaskRules(
    "zebra_puzzles",
    unused_levels={5: "1 of 8 items were not ready after 20 s"},
    faster=(
        FasterFunction(
            module="reasoning_gym.logic.contrib.logic_puzzle.generate",
            name="has_unique_solution",
            digest="762ae55eada87943",
            make=_make_has_unique_solution,
        ),
    ),
)
