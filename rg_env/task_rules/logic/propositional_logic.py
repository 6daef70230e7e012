"""Conclusions of propositional_logic, and which of them are worth anything.

The library scores 1.0 whatever follows from the premises and is no tautology. That is
true of one disjunction of two letters in 84 of 100 items, of the premises joined by ∧
in all, and of any formula where the premises contradict each other, as in 26 of 100.
Here a conclusion that follows is scored in full if a part of it, split at ∧, is

    inferred    it is no premise, or premises joined, with as many letters or more
    strong      none of the clauses that it implies follows without one of its letters,
                or it is the library's example in other words

`¬P ∧ Q` from `¬P` and `Q` states premises, `¬P → Q` from `P` is not strong, and
`¬(P ∧ Q)` from `(P ∧ Q) → ¬Q` is an inference, with fewer letters than its premise.

The library gives 0.25 for every single letter, also for one that took an inference;
such a letter is strong. Whatever else follows is scored less than the library's trivial
answers.
"""

from __future__ import annotations

import functools
import itertools
import operator
import string
from collections.abc import Iterable, Iterator, Sequence

from rg_env.task_rules.common_answers import seldom
from rg_env.task_rules.reading.formulas import (
    BINDING,
    MAX_TOKENS,
    Formula,
    as_formula,
    letter_formula,
    read_formula,
)
from rg_env.task_rules.rules import (
    Entry,
    Guard,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

_MAX_CHARS = 1_000
_MAX_OPERATORS = 100
_MAX_DEPTH = 50


def _too_costly(answer: str, gold: str | None) -> str | None:
    """Return why a text is no formula within the bounds.

    The library takes any text between two operators for a variable and tries all 2^n
    assignments, so `P`, `PP`, `PPP`, ... is a bomb made of one letter. Here every
    operand is one capital letter. Its own check of the letters then bounds their
    number. Its parser is quadratic in the operators and recursive in the depth.
    """
    if len(answer) > _MAX_CHARS:
        return f"longer than {_MAX_CHARS} characters"
    if sum(map(answer.count, BINDING)) > _MAX_OPERATORS:
        return f"more than {_MAX_OPERATORS} operators"
    depth, operand_next = 0, True
    for char in answer:
        if char in " \t\r\n":
            continue
        if operand_next:
            if char in string.ascii_uppercase:
                operand_next = False
            elif char == "(" and depth < _MAX_DEPTH:
                depth += 1
            elif char != "¬":
                return f"{char!r} where a letter was expected"
        elif char in BINDING and char != "¬":
            operand_next = True
        elif char == ")" and depth > 0:
            depth -= 1
        else:
            return f"{char!r} where an operator was expected"
    return "unfinished" if operand_next or depth else None


TRIVIAL = 0.25
"""What the library gives for a single letter or a tautology."""

FOLLOWS = 0.1
"""What a conclusion is worth that follows and takes no inference: with more, a premise
or one formula of two letters scored 0.4 on average."""

MAX_LETTERS = 4
"""Different letters of a part that may be strong: it implies 3**4 clauses at most."""


def _unbracketed(text: str) -> str:
    return "".join(text.split()).replace("(", "").replace(")", "")


def _shorter_clauses(rows: int, count: int) -> Iterator[int]:
    """Yield the clauses that a formula implies, each less one of its letters.

    None of them follows from the formula, and none comes of one with too many letters.
    """
    every_row = (1 << (1 << count)) - 1
    letters = [letter_formula(index, count).rows for index in range(count)]
    used = [
        letter
        for index, letter in enumerate(letters)
        if (rows & letter) >> (1 << index) != rows & ~letter
    ]
    signed = [(0, letter, letter ^ every_row) for letter in used]
    for clause in itertools.product(*signed) if len(used) <= MAX_LETTERS else ():
        if not rows & ~_any_of(clause):
            shorter = [
                _any_of(clause[:n] + clause[n + 1 :])
                for n, letter in enumerate(clause)
                if letter
            ]
            yield from shorter if all(rows & ~less for less in shorter) else ()


def _any_of(options: Iterable[int]) -> int:
    return functools.reduce(operator.or_, options, 0)


def _is_inferred(
    answer: Formula, example: Formula, premises: Sequence[Formula], count: int
) -> bool:
    """Say whether a part of a conclusion is inferred and strong; see the module."""
    every_row = (1 << (1 << count)) - 1
    known = functools.reduce(operator.and_, (premise.rows for premise in premises))
    copied = {
        part
        for p in premises
        if p.letters <= sum(answer.parts.get(part, -MAX_TOKENS) for part in p.parts)
        for part in p.parts
    }
    for rows, letters in answer.parts.items():
        stated = every_row
        for premise in premises:
            if premise.letters <= letters and not rows & ~premise.rows:
                stated &= premise.rows
        shorter = list(_shorter_clauses(rows, count))
        is_strong = bool(shorter) and all(known & ~less for less in shorter)
        is_new = rows not in copied and stated != rows
        if is_new and (is_strong or answer.rows == example.rows):
            return True
    return False


def _score_conclusion(answer: str, entry: Entry, library: LibraryScore) -> float:
    metadata = entry["metadata"]
    letters = metadata["variables"]
    found = read_formula(answer, letters)
    if found is None:
        return 0.0
    value = library(answer)
    example = read_formula(metadata["example_answer"], letters)
    follows_from_nothing = found.rows == (1 << (1 << len(letters))) - 1
    if value < TRIVIAL or example is None or follows_from_nothing:
        return value
    same_signs = _unbracketed(answer) == _unbracketed(metadata["example_answer"])
    if same_signs and found.rows == example.rows:
        return value
    read = [read_formula(premise, letters) for premise in metadata["premises"]]
    premises = [premise for premise in read if premise is not None]
    is_inferred = _is_inferred(found, example, premises, len(letters))
    return 1.0 if is_inferred else FOLLOWS


def _premises_joined(entry: Entry) -> str:
    return " ∧ ".join(f"({premise})" for premise in entry["metadata"]["premises"])


def _rows_of_all(formulas: Sequence[str], letters: Sequence[str]) -> list[int]:
    read = [read_formula(formula, letters) for formula in formulas]
    found = [formula.rows for formula in read if formula is not None]
    if len(found) < len(read):
        raise ValueError(f"no formulas of the library: {formulas!r}")
    return found


def share_left(formulas: Sequence[str], letters: Sequence[str]) -> float:
    """Return the share of the cases in which all formulas are true, in [0, 1].

    The letters are those that may stand in them, at most ten.
    """
    left = functools.reduce(operator.and_, _rows_of_all(formulas, letters))
    return left.bit_count() / (1 << len(letters))


def is_stated(conclusion: str, formulas: Sequence[str], letters: Sequence[str]) -> bool:
    """Say whether a conclusion says the same as one of the formulas."""
    found, *stated = _rows_of_all([conclusion, *formulas], letters)
    return found in stated


def _premises_and_letters(entry: Entry) -> tuple[list[str], list[str]]:
    return entry["metadata"]["premises"], entry["metadata"]["variables"]


def _makes_two_letters_true(entry: Entry) -> bool:
    premises, letters = _premises_and_letters(entry)
    denial = f"¬({' ∧ '.join(letters[:2])})"
    return len(letters) > 1 and share_left([*premises, denial], letters) == 0


RULES = TaskRules(
    "propositional_logic",
    guard=Guard(
        "2**n assignments of n names; recursive, quadratic parser",
        "one formula of the item's letters",
        _too_costly,
    ),
    notation=as_formula,
    fix=ScorerFix(
        scorer_sha256="5cbc2250d7c9ec68d093bf03acd823b0efef3c99ae4b3bf23390d5b2277418af",
        fault="Scores the premises themselves, and the weakest that follows.",
        proof=_premises_joined,
        score=_score_conclusion,
    ),
    item_checks=(
        ItemCheck(
            "premises hold in no case or in every one, so that all follows or nothing",
            lambda entry: share_left(*_premises_and_letters(entry)) in (0, 1),
        ),
        ItemCheck(
            "example of a conclusion says the same as one of the premises",
            lambda entry: is_stated(
                entry["metadata"]["example_answer"], *_premises_and_letters(entry)
            ),
            answer_stands=True,
        ),
        seldom(
            "premises make the first two letters true",
            _makes_two_letters_true,
            one_in=2,  # `P ∧ Q` scored 0.34 at the defaults
        ),
    ),
    level_repair=LevelRepair(
        {0: {"max_vars": 4, "max_statements": 4, "max_complexity": 2}},
        "level 0 has four different questions in 30, whose premises are letters, and"
        " with three letters one disjunction is worth 0.38",
    ),
    solution=lambda entry: entry["metadata"].get("example_answer"),
)
