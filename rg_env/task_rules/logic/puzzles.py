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

    She belongs to two circles. In the circle with the named woman she has as many as
    that woman: the woman replaces Matilda herself. In the other circle she is one of
    the man's female colleagues, and has one fewer. In every language, the numbers are
    those of men and women of the first circle, then of the second.
    """
    if entry["metadata"]["task_type"] != "colleagues":
        return False
    _, first, _, second = map(int, re.findall("[0-9]+", entry["question"]))
    return first + second - 1 != int(entry["answer"])


def _has_no_such_brother(entry: Entry) -> bool:
    """Return whether the question asks for the brother of an only brother."""
    words = _BROTHERS.search(entry["question"])
    return words is not None and words[1] != words[3] and int(words[2]) == 1


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
# universal statement says that certain kinds do not exist, a particular one that one of
# certain kinds exists. If a conclusion can be refuted, the largest allowed set of kinds
# refutes it.

_STATEMENT = re.compile(r"(All|No|Some) (.+?) are (not )?(.+)")
_FORMAL = re.compile(r"([∀∃])x ∈ (.+): x ([∈∉]) (.+)")
_ALL_KINDS = 0xFF


@dataclasses.dataclass(frozen=True)
class _Statement:
    """A statement "All/No/Some ... are (not) ..."."""

    is_universal: bool
    terms: tuple[str, str]
    is_of_both: bool
    """Whether it is about things under both terms, not under the first alone."""

    def kinds(self, terms: Sequence[str]) -> int:
        """Return the kinds that the statement is about."""
        subject, predicate = (_kinds_under(terms.index(t)) for t in self.terms)
        return subject & (predicate if self.is_of_both else _ALL_KINDS & ~predicate)


def _kinds_under(term: int) -> int:
    return sum(1 << kind for kind in range(8) if kind >> term & 1)


def _read(text: str) -> _Statement:
    if formal := _FORMAL.fullmatch(text):  # in the multilingual version
        quantifier, subject, sign, predicate = formal.groups()
        is_universal = quantifier == "∀"
        return _Statement(
            is_universal, (subject, predicate), is_universal == (sign == "∉")
        )
    match = _STATEMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no categorical statement")
    how, subject, negation, predicate = match.groups()
    is_of_both = how == "No" or (how == "Some" and not negation)
    return _Statement(how != "Some", (subject, predicate), is_of_both)


def follows(premises: Sequence[str], conclusion: str, are_there: bool) -> bool:
    """Return whether a conclusion follows from premises with at most three terms.

    If `are_there` is true, every term applies to something.

    Example:
        >>> follows(["All a are b", "All b are c"], "Some a are c", are_there=True)
        True
    """
    *given, concluded = map(_read, [*premises, conclusion])
    terms = sorted({term for each in (*given, concluded) for term in each.terms})
    allowed = _ALL_KINDS
    needed = [_kinds_under(i) for i in range(len(terms))] if are_there else []
    for premise in given:
        kinds = premise.kinds(terms)
        if premise.is_universal:
            allowed &= ~kinds
        else:
            needed.append(kinds)
    kinds = concluded.kinds(terms)
    if concluded.is_universal:
        return not allowed & kinds or any(not allowed & some for some in needed)
    return any(not allowed & ~kinds & some for some in needed)


def _interpretations(entry: Entry) -> set[bool]:
    """Return whether it follows if terms may be empty, and if they may not."""
    metadata = entry["metadata"]
    premises = [metadata["premise1"], metadata["premise2"]]
    return {
        follows(premises, metadata["conclusion"], are_there)
        for are_there in (False, True)
    }


SYLLOGISMS = TaskRules(
    "syllogism",
    item_checks=(
        ItemCheck(
            "answer is wrong in every interpretation",
            lambda entry: entry["metadata"]["is_valid"] not in _interpretations(entry),
        ),
        ItemCheck(
            "answer depends on whether its terms may be empty, which is not given",
            lambda entry: len(_interpretations(entry)) > 1,
        ),
    ),
    level_repair=LevelRepair(
        {0: {"allow_no": True}},
        "level 0 has only statements with All, and Yes is right for 93 of 100 items",
    ),
)


# -- zebra_puzzles ---------------------------------------------------------------------

# The library makes a puzzle by removing clues while the solution stays unique. It
# writes every clause of every clue as text, numbers them again for each of a hundred
# tries, and searches for two solutions.

Clause = tuple[int, ...]
UNSATISFIABLE = "UNSAT"


class _Numbers(dict[str, int]):
    """Literal to its number, assigned at the first access; "~" negates."""

    def __missing__(self, literal: str) -> int:
        is_negated = literal[0] == "~"
        self[literal] = number = -self[literal[1:]] if is_negated else len(self) + 1
        return number


class _Numbering:
    """The clauses of one puzzle in the numbers of the solver; each is built once."""

    def __init__(self, puzzle: Any) -> None:
        self._numbers = _Numbers()
        self._of_clues: dict[Any, list[Clause]] = {}
        self.always = [self._clause(clause) for clause in puzzle.constraints]
        self.not_the_known_one = tuple(
            -self._numbers[f"{element} {house}"]
            for element, house in puzzle.solution.items()
        )

    def _clause(self, literals: Iterable[str]) -> Clause:
        return tuple([self._numbers[literal] for literal in literals])

    def of_clue(self, clue: Any) -> list[Clause]:
        if clue not in self._of_clues:
            self._of_clues[clue] = [self._clause(clause) for clause in clue.as_cnf()]
        return self._of_clues[clue]


def _make_has_unique_solution(own: Any) -> Callable[[Any, Iterable[Any]], bool]:
    """Return a `has_unique_solution` that calls the solver once.

    The clues hold in the solution that the puzzle was made from. So the solution is
    unique if the solver finds none when this one is excluded.
    """
    solve = importlib.import_module("pycosat").solve

    def has_unique_solution(puzzle: Any, clues: Iterable[Any]) -> bool:
        numbering = vars(puzzle).get("_numbering")
        if numbering is None:
            numbering = puzzle._numbering = _Numbering(puzzle)
        clauses = [*numbering.always, numbering.not_the_known_one]
        for clue in {*puzzle.clues, *clues}:
            clauses += numbering.of_clue(clue)
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
