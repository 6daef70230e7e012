"""Parses formulas of propositional logic: `(P ∧ ¬Q) → R`.

`as_formula` replaces signs that people write by those that the question names.
`read_formula` parses a formula with these, and computes the rows of its truth table as
bits. No text is evaluated.
"""

# ruff: noqa: RUF001 - the library's own signs

from __future__ import annotations

import ast
import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from rg_env.task_rules.rules import Entry

# -- canonical form -----------------------------------------------------------------

MAX_CHARS = 4_000
_CONNECTIVES = {
    "↔": r"<-+>|<=+>|\\(?:leftrightarrow|iff)\b|\b(?:iff|IFF)\b",
    "→": r"-+>|=+>|\\(?:rightarrow|to|implies)\b|\b(?:implies|IMPLIES)\b",
    "∧": r"&&?|/\\|\\(?:land|wedge)\b|\b(?:and|AND)\b",
    "∨": r"\|\|?|\\/|\\(?:lor|vee)\b|\b(?:or|OR)\b",
    "¬": r"[~!]|\\(?:neg|lnot)\b|\b(?:not|NOT)\b",
}
_BRACKETS = str.maketrans("[]", "()")
_WRITTEN_SIGNS = [(re.compile(signs), sign) for sign, signs in _CONNECTIVES.items()]


def as_formula(answer: str, entry: Entry) -> str:
    """Write a formula with the connectives that its question names."""
    if len(answer) > MAX_CHARS:
        return answer
    text = answer
    for signs, sign in _WRITTEN_SIGNS:
        text = signs.sub(sign, text)
    return text.translate(_BRACKETS)


# -- truth table -----------------------------------------------------------------------

# The most signs of a formula; a premise of the highest level has at most 61.
MAX_SIGNS = 500

OPERATORS = "↔→∨∧¬"
"""The operators; the first one binds the loosest."""

# Operators of Python that bind in the same order, and also associate to the left.
_TO_PYTHON = str.maketrans({"↔": "|", "→": "^", "∨": "&", "∧": "<<", "¬": "~"})

Clauses = frozenset[int]
"""Clauses as bits: bit `n` for letter n, bit `n + letter_count` for its negation."""

# A formula with more clauses is rejected. A premise of the highest level has at most
# 58, and the premises of an item 79.
MAX_CLAUSES = 200

# The most pairs of clauses in one join, so that no formula takes more than a second.
MAX_PAIRS = 2_000


@dataclasses.dataclass(frozen=True)
class Formula:
    """A formula over given letters.

    Attributes:
        letter_count: The number of the given letters.
        rows: The rows of the truth table in which it holds, one bit each.
        clauses: Its conjunctive normal form without tautologies and without clauses
            that another one implies; None if there are too many clauses. No resolution
            is done: `(P or Q) and (P or not Q)` has two clauses.
        negation_clauses: The clauses of its negation.
    """

    letter_count: int
    rows: int
    clauses: Clauses | None
    negation_clauses: Clauses | None

    @property
    def every_row(self) -> int:
        """All rows of the truth table."""
        return (1 << (1 << self.letter_count)) - 1


@functools.cache
def clause_rows(clause: int, letter_count: int) -> int:
    """Return the rows in which a clause holds, none for the empty clause."""
    rows = 0
    for index in range(letter_count):
        letter = letter_formula(index, letter_count)
        if clause >> index & 1:
            rows |= letter.rows
        if clause >> index + letter_count & 1:
            rows |= negated(letter).rows
    return rows


@functools.cache
def letter_formula(index: int, letter_count: int) -> Formula:
    """Return the letter that is true in the rows with bit `index`."""
    rows = sum(1 << row for row in range(1 << letter_count) if row >> index & 1)
    clauses = frozenset({1 << index})
    negation_clauses = frozenset({1 << index + letter_count})
    return Formula(letter_count, rows, clauses, negation_clauses)


def _without_redundant(clauses: Iterable[int], letter_count: int) -> Clauses | None:
    """Drop tautologies and implied clauses; None if too many are left."""
    kept: list[int] = []
    for clause in sorted(clauses, key=int.bit_count):
        is_tautology = clause >> letter_count & clause
        if is_tautology or any(not other & ~clause for other in kept):
            continue
        kept.append(clause)
    return frozenset(kept) if len(kept) <= MAX_CLAUSES else None


def _conjunction(
    left: Clauses | None, right: Clauses | None, letter_count: int
) -> Clauses | None:
    if left is None or right is None:
        return None
    return _without_redundant(left | right, letter_count)


def _disjunction(
    left: Clauses | None, right: Clauses | None, letter_count: int
) -> Clauses | None:
    if left is None or right is None or len(left) * len(right) > MAX_PAIRS:
        return None
    return _without_redundant({a | b for a in left for b in right}, letter_count)


def negated(formula: Formula) -> Formula:
    """Return the negation of a formula."""
    return Formula(
        formula.letter_count,
        formula.rows ^ formula.every_row,
        clauses=formula.negation_clauses,
        negation_clauses=formula.clauses,
    )


def _both(left: Formula, right: Formula) -> Formula:
    count = left.letter_count
    return Formula(
        count,
        left.rows & right.rows,
        clauses=_conjunction(left.clauses, right.clauses, count),
        negation_clauses=_disjunction(
            left.negation_clauses, right.negation_clauses, count
        ),
    )


def _either(left: Formula, right: Formula) -> Formula:
    return negated(_both(negated(left), negated(right)))


def _implied(left: Formula, right: Formula) -> Formula:
    return _either(negated(left), right)


def _equal(left: Formula, right: Formula) -> Formula:
    return _both(_implied(left, right), _implied(right, left))


_JOINED: Mapping[type[ast.operator], Callable[[Formula, Formula], Formula]] = {
    ast.BitOr: _equal,
    ast.BitXor: _implied,
    ast.BitAnd: _either,
    ast.LShift: _both,
}


def _formula(node: ast.expr, letters: Sequence[str]) -> Formula:
    if isinstance(node, ast.Name):
        return letter_formula(letters.index(node.id), len(letters))
    if isinstance(node, ast.UnaryOp):
        return negated(_formula(node.operand, letters))
    if not isinstance(node, ast.BinOp):
        raise ValueError("neither a letter nor an operator")
    left, right = (_formula(side, letters) for side in (node.left, node.right))
    return _JOINED[type(node.op)](left, right)


def read_formula(text: str, letters: Sequence[str]) -> Formula | None:
    """Parse a formula as the library does; None if it is not one over these letters.

    Signs bind in the order of `OPERATORS` and associate to the left.
    """
    signs = "".join(text.split())
    if len(signs) > MAX_SIGNS or not set(signs) <= {*letters, *OPERATORS, *"()"}:
        return None
    try:
        tree = ast.parse(signs.translate(_TO_PYTHON), mode="eval")
        return _formula(tree.body, letters)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
