"""propositional_logic: scores a conclusion only if it takes an inference.

The library gives 1.0 to any formula that follows from the premises and is no tautology:
to a disjunction of two letters in 84 of 100 items, to the premises joined by ∧ in all,
and to everything if the premises contradict each other, as in 26 of 100. It gives 0.25
to a single letter, even if that takes an inference.

Here a conclusion scores 1.0 if it follows and takes an inference, and 0 otherwise. The
conclusion and the premises are written as clauses, each a disjunction of letters and
their negations (`rg_env.task_rules.reading.formulas`). A conclusion takes an inference
if one of its clauses is not a clause of a premise and does not follow without one of
its letters:

    ¬P ∧ Q    from ¬P and Q            two premises joined
    ¬P → Q    from P                  a premise with a letter more
    R → Q     from P and P → Q        an inference with a letter more
    ¬Q → ¬P   from P → Q              a premise as its contrapositive
    P → R     from P → Q and Q → R    an inference
    P ∧ Q     from P and P → Q        an inference beside a premise

Any inference counts, not only the library's example. That example is drawn at random,
and takes no inference in two of three items that have one. The example of an item here
is the shortest clause that follows from several premises but from no single one.
"""

# ruff: noqa: RUF001 - the library's own signs

from __future__ import annotations

import functools
import itertools
import operator
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rg_env.task_rules.reading.formulas import (
    OPERATORS,
    Formula,
    as_formula,
    clause_rows,
    letter_formula,
    negated,
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
    downsample,
)

_MAX_CHARS = 1_000
_MAX_OPERATORS = 100
_MAX_DEPTH = 50


def _too_costly(answer: str, gold: str | None) -> str | None:
    """Return why a text is no formula within the bounds, None if it is one.

    The library takes any text between two operators for a variable and tries all 2^n
    assignments, so `P ∧ PP ∧ PPP ...` is a bomb of one letter. Here every operand is
    one capital letter, and the library's check of the letters bounds their number. Its
    parser takes quadratic time in the operators and recurses with the depth.
    """
    if len(answer) > _MAX_CHARS:
        return f"longer than {_MAX_CHARS} characters"
    if sum(map(answer.count, OPERATORS)) > _MAX_OPERATORS:
        return f"more than {_MAX_OPERATORS} operators"
    depth = 0
    operand_next = True
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
        elif char in OPERATORS and char != "¬":
            operand_next = True
        elif char == ")" and depth > 0:
            depth -= 1
        else:
            return f"{char!r} where an operator was expected"
    return "unfinished" if operand_next or depth else None


# An item must imply a clause of at most so many letters. Ten letters have 1,160 such
# clauses.
MAX_LETTERS = 3


def _premises(entry: Entry) -> list[Formula]:
    metadata = entry["metadata"]
    read = [
        read_formula(premise, metadata["variables"]) for premise in metadata["premises"]
    ]
    formulas = [formula for formula in read if formula is not None]
    if not formulas or len(formulas) < len(read):
        raise ValueError(f"no formulas of the library: {metadata['premises']!r}")
    return formulas


def _rows_of_all(premises: Sequence[Formula]) -> int:
    return functools.reduce(operator.and_, (premise.rows for premise in premises))


def _takes_an_inference(formulas: Formula, premises: Sequence[Formula]) -> bool:
    """Return whether a clause of a conclusion takes an inference (module docstring)."""
    if formulas.clauses is None or any(premise.clauses is None for premise in premises):
        return False
    stated = frozenset().union(*(premise.clauses or () for premise in premises))
    known = _rows_of_all(premises)
    signs = [1 << place for place in range(2 * formulas.letter_count)]

    def is_shortest(clause: int) -> bool:
        parts = (clause & ~sign for sign in signs if clause & sign)
        return all(known & ~clause_rows(part, formulas.letter_count) for part in parts)

    return any(
        all(premise & ~clause for premise in stated) and is_shortest(clause)
        for clause in formulas.clauses
    )


def _score_conclusion(answer: str, entry: Entry, library: LibraryScore) -> float:
    formulas = read_formula(answer, entry["metadata"]["variables"])
    if formulas is None:
        return 0.0
    premises = _premises(entry)
    follows = not _rows_of_all(premises) & ~formulas.rows
    return float(follows and _takes_an_inference(formulas, premises))


def _short_clauses(letters: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield clauses and the rows in which they hold, the shortest clauses first."""
    signed = []
    for index, letter in enumerate(letters):
        formula = letter_formula(index, len(letters))
        signed.append(((letter, formula.rows), (f"¬{letter}", negated(formula).rows)))
    for number in range(1, MAX_LETTERS + 1):
        for chosen in itertools.combinations(signed, number):
            for parts in itertools.product(*chosen):
                texts, rows = zip(*parts, strict=True)
                yield " ∨ ".join(texts), functools.reduce(operator.or_, rows)


def inference(entry: Entry) -> str | None:
    """Return the shortest clause that the premises imply, but no single premise.

    It is None if there is no such clause of at most `MAX_LETTERS` letters.
    """
    premises = _premises(entry)
    if any(premise.clauses is None for premise in premises):
        return None
    known = _rows_of_all(premises)
    for text, rows in _short_clauses(entry["metadata"]["variables"]):
        if not known & ~rows and all(premise.rows & ~rows for premise in premises):
            return text
    return None


def _is_a_letter(entry: Entry) -> bool:
    """Return whether a letter or its negation follows by an inference."""
    return len(inference(entry) or "") in (1, 2)


def _with_an_inference(entry: Entry) -> Mapping[str, Any]:
    return {"example_answer": inference(entry)}


_EASY = {"min_vars": 3, "min_complexity": 2, "max_complexity": 2}

PROPOSITIONAL_LOGIC = TaskRules(
    "propositional_logic",
    # The scorer tries 2**n assignments of n names and parses in quadratic time.
    guard=Guard(_too_costly),
    notation=as_formula,
    kept_signs="=",
    fix=ScorerFix(
        fault="Accepts the premises themselves, and weakened versions of them.",
        score=_score_conclusion,
    ),
    item_checks=(
        ItemCheck(
            "premises contradict each other, so that everything follows",
            lambda entry: not _rows_of_all(_premises(entry)),
        ),
        ItemCheck(
            "premises imply nothing together that none of them implies alone",
            lambda entry: inference(entry) is None,
        ),
        downsample(
            "premises imply a letter, which is easily guessed",
            _is_a_letter,
            one_in=8,  # the rarest that is no premise scored 0.46 at the defaults
        ),
    ),
    corrected_metadata=_with_an_inference,
    level_repair=LevelRepair(
        {0: {**_EASY, "max_vars": 4, "max_statements": 4}, 1: _EASY},
        "many premises of the levels 0 and 1 are letters, from which nothing follows",
    ),
    solution=lambda entry: entry["metadata"].get("example_answer"),
)
