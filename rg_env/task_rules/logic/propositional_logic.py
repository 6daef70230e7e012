"""propositional_logic: scores a conclusion only if it takes an inference.

The library gives 1.0 to any formula that follows from the premises and is not a
tautology: to a disjunction of two letters in 84 of 100 items, to the premises joined by
∧ in all, and to everything if the premises contradict each other, as in 26 of 100. It
gives 0.25 to a single letter, even if that takes an inference.

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


def _why_not(answer: str, gold: str | None) -> str | None:
    """Return why a text is not a formula within the bounds, None if it is one.

    The library takes any text between two operators for a variable and tries all 2^n
    assignments, so even `P ∧ PP ∧ PPP ...`, with one letter, would run for hours. Here
    every operand is one capital letter, and the library's check of the letters bounds
    their number. Its parser takes quadratic time in the operators and recurses with the
    depth.
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


# The most letters of the clause that the premises of an item must imply. Ten letters
# have 1,160 clauses of this length or less.
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


def _common_rows(premises: Sequence[Formula]) -> int:
    """Return the rows of the truth table in which all premises hold, as bits."""
    return functools.reduce(operator.and_, (premise.rows for premise in premises))


def _takes_inference(conclusion: Formula, premises: Sequence[Formula]) -> bool:
    """Return whether a clause of a conclusion takes an inference (module docstring)."""
    count = conclusion.letter_count
    if None in (conclusion.clauses, *(premise.clauses for premise in premises)):
        return False
    stated = frozenset().union(*(premise.clauses or () for premise in premises))
    rows = _common_rows(premises)
    literals = [1 << index for index in range(2 * count)]

    def is_shortest(clause: int) -> bool:
        shorter = (clause & ~literal for literal in literals if clause & literal)
        return all(rows & ~clause_rows(other, count) for other in shorter)

    return any(
        all(other & ~clause for other in stated) and is_shortest(clause)
        for clause in conclusion.clauses or ()
    )


def _score_conclusion(answer: str, entry: Entry, library: LibraryScore) -> float:
    conclusion = read_formula(answer, entry["metadata"]["variables"])
    if conclusion is None:
        return 0.0
    premises = _premises(entry)
    follows = not _common_rows(premises) & ~conclusion.rows
    return float(follows and _takes_inference(conclusion, premises))


def _short_clauses(letters: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield clauses and the rows in which they hold, the shortest clauses first."""
    literals = []
    for index, letter in enumerate(letters):
        formula = letter_formula(index, len(letters))
        literals.append(((letter, formula.rows), (f"¬{letter}", negated(formula).rows)))
    for length in range(1, MAX_LETTERS + 1):
        for pairs in itertools.combinations(literals, length):
            for clause in itertools.product(*pairs):
                texts, rows = zip(*clause, strict=True)
                yield " ∨ ".join(texts), functools.reduce(operator.or_, rows)


def inference(entry: Entry) -> str | None:
    """Return the shortest clause that the premises imply, but no single premise.

    It is None if there is no such clause of at most `MAX_LETTERS` letters.
    """
    premises = _premises(entry)
    if any(premise.clauses is None for premise in premises):
        return None
    common_rows = _common_rows(premises)
    for text, rows in _short_clauses(entry["metadata"]["variables"]):
        follows = not common_rows & ~rows
        if follows and all(premise.rows & ~rows for premise in premises):
            return text
    return None


def _implies_letter(entry: Entry) -> bool:
    """Return whether a letter or its negation follows by an inference."""
    return len(inference(entry) or "") in (1, 2)


def _corrected_metadata(entry: Entry) -> Mapping[str, Any]:
    return {"example_answer": inference(entry)}


_EASY = {"min_vars": 3, "min_complexity": 2, "max_complexity": 2}

PROPOSITIONAL_LOGIC = TaskRules(
    "propositional_logic",
    # The scorer tries 2**n assignments of n names and parses in quadratic time.
    guard=Guard(_why_not),
    notation=as_formula,
    kept_signs="=",
    fix=ScorerFix(
        fault="Accepts the premises themselves, and weakened versions of them.",
        score=_score_conclusion,
    ),
    item_checks=(
        ItemCheck(
            "premises contradict each other, so that everything follows",
            lambda entry: not _common_rows(_premises(entry)),
        ),
        ItemCheck(
            "premises imply nothing together that none of them implies alone",
            lambda entry: inference(entry) is None,
        ),
        downsample(
            "premises imply a letter, which is easily guessed",
            _implies_letter,
            one_in=8,  # the rarest that is not a premise scored 0.46 at the defaults
        ),
    ),
    corrected_metadata=_corrected_metadata,
    level_repair=LevelRepair(
        {0: {**_EASY, "max_vars": 4, "max_statements": 4}, 1: _EASY},
        "many premises of the levels 0 and 1 are letters, from which nothing follows",
    ),
    solution=lambda entry: entry["metadata"].get("example_answer"),
)
