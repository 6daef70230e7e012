"""Conclusions of propositional_logic, and which of them are worth anything.

The library scores 1.0 whatever follows from the premises and is no tautology. That is
true of one disjunction of two letters in 84 of 100 items, of the premises joined by ∧
in all, and of any formula where the premises contradict each other, as in 26 of 100;
and a single letter scores 0.25, also where it took an inference.

Here a conclusion that follows is scored in full if it takes an inference, and every
other one scores nothing. Conclusion and premises are multiplied out into clauses, each
an "or" of letters and of their negations (`rg_env.task_rules.reading.formulas`). A
conclusion takes an inference if one of its clauses is none of a premise, and does
not follow with a letter taken out of it:

    ¬P ∧ Q    from ¬P and Q            two premises joined
    ¬P → Q    from P                  a premise with a letter more
    R → Q     from P and P → Q        an inference with a letter more
    ¬Q → ¬P   from P → Q              a premise turned round
    P → R     from P → Q and Q → R    an inference
    P ∧ Q     from P and P → Q        an inference beside a premise

How strong an inference is does not matter, nor which one the library has in mind: its
example of a conclusion is drawn by chance, and in two of three items with something to
infer it takes no inference. The example of an item is another one here: the shortest
clause that several premises imply and none of them alone.
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
    BINDING,
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
    seldom,
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


# Letters of the clause that an item has to imply at most: with ten letters there are
# 1,160 such clauses.
MOST_LETTERS = 3


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
    """Return whether a clause of a conclusion takes an inference; see above."""
    if formulas.clauses is None or any(premise.clauses is None for premise in premises):
        return False
    stated = frozenset().union(*(premise.clauses or () for premise in premises))
    known = _rows_of_all(premises)
    signs = [1 << place for place in range(2 * formulas.count)]

    def is_shortest(clause: int) -> bool:
        parts = (clause & ~sign for sign in signs if clause & sign)
        return all(known & ~clause_rows(part, formulas.count) for part in parts)

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
    """Yield clauses with the rows in which they hold, the shortest first."""
    signed = []
    for index, letter in enumerate(letters):
        formula = letter_formula(index, len(letters))
        signed.append(((letter, formula.rows), (f"¬{letter}", negated(formula).rows)))
    for number in range(1, MOST_LETTERS + 1):
        for chosen in itertools.combinations(signed, number):
            for parts in itertools.product(*chosen):
                texts, rows = zip(*parts, strict=True)
                yield " ∨ ".join(texts), functools.reduce(operator.or_, rows)


def inference(entry: Entry) -> str | None:
    """Return the shortest clause that the premises imply, and none of them alone.

    None where it has more than `MOST_LETTERS`, or none is implied.
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
    """Return whether a letter, or its negation, follows by an inference."""
    return len(inference(entry) or "") in (1, 2)


def _with_an_inference(entry: Entry) -> Mapping[str, Any]:
    return {"example_answer": inference(entry)}


_EASY = {"min_vars": 3, "min_complexity": 2, "max_complexity": 2}

PROPOSITIONAL_LOGIC = TaskRules(
    "propositional_logic",
    # The scorer tries 2**n assignments of n names; it parses in quadratic time.
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
        seldom(
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
