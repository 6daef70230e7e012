r"""Parses formulas of propositional logic: `(P ∧ ¬Q) → R`.

The parser knows the signs that the question names, and others that people write for
them. It computes the rows of the truth table as bits and evaluates no text.
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
    "\u2194": r"<-+>|<=+>|\\(?:leftrightarrow|iff)\b|\b(?:iff|IFF)\b",
    "\u2192": r"-+>|=+>|\\(?:rightarrow|to|implies)\b|\b(?:implies|IMPLIES)\b",
    "\u2227": r"&&?|/\\|\\(?:land|wedge)\b|\b(?:and|AND)\b",
    "\u2228": r"\|\|?|\\/|\\(?:lor|vee)\b|\b(?:or|OR)\b",
    "\u00ac": r"[~!]|\\(?:neg|lnot)\b|\b(?:not|NOT)\b",
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

# Signs of a formula; a premise of the highest level has 61 at most.
MAX_TOKENS = 500

OPERATORS = "↔→∨∧¬"
"""The loosest first."""

# Operators of Python that bind in the same order, and associate to the left too.
_OF_PYTHON = str.maketrans(
    dict(zip(OPERATORS, ("|", "^", "&", "<<", "~"), strict=True))
)

Clauses = frozenset[int]
"""Clauses by their letters: bit `n` for letter n, bit `n + count` for its negation."""

# A formula with more clauses is rejected. A premise of the highest level has at most
# 58, and the premises of an item 79.
MAX_CLAUSES = 200

# Most pairs of clauses in one join, so that no formula takes more than a second.
MAX_PAIRS = 2_000


@dataclasses.dataclass(frozen=True)
class Formula:
    """A formula over given letters.

    Attributes:
        count: The number of the given letters.
        rows: The rows of the truth table in which it holds, one bit each.
        clauses: Its conjunctive normal form without tautologies and without clauses
            that another one implies; None if there are too many clauses. No resolution
            is done: `(P or Q) and (P or not Q)` has two clauses.
        denied: The clauses of its negation.
    """

    count: int
    rows: int
    clauses: Clauses | None
    denied: Clauses | None

    @property
    def every_row(self) -> int:
        """All rows of the truth table."""
        return (1 << (1 << self.count)) - 1


@functools.cache
def clause_rows(clause: int, count: int) -> int:
    """Return the rows in which a clause of `count` letters holds; none if empty."""
    rows = 0
    for index in range(count):
        letter = letter_formula(index, count)
        rows |= letter.rows * (clause >> index & 1)
        rows |= negated(letter).rows * (clause >> index + count & 1)
    return rows


@functools.cache
def letter_formula(index: int, count: int) -> Formula:
    """Return the letter that is true in the rows with bit `index`."""
    rows = sum(1 << row for row in range(1 << count) if row >> index & 1)
    clauses = frozenset({1 << index})
    return Formula(count, rows, clauses, denied=frozenset({1 << index + count}))


def _needed(clauses: Iterable[int], count: int) -> Clauses | None:
    kept: list[int] = []
    for clause in sorted(clauses, key=int.bit_count):
        always_holds = clause >> count & clause
        if always_holds or any(not other & ~clause for other in kept):
            continue
        kept.append(clause)
    return frozenset(kept) if len(kept) <= MAX_CLAUSES else None


def _all_of(left: Clauses | None, right: Clauses | None, count: int) -> Clauses | None:
    if left is None or right is None:
        return None
    return _needed(left | right, count)


def _one_of(left: Clauses | None, right: Clauses | None, count: int) -> Clauses | None:
    if left is None or right is None or len(left) * len(right) > MAX_PAIRS:
        return None
    return _needed({a | b for a in left for b in right}, count)


def negated(formula: Formula) -> Formula:
    """Return the negation of a formula."""
    rows = formula.rows ^ formula.every_row
    return Formula(formula.count, rows, clauses=formula.denied, denied=formula.clauses)


def _both(left: Formula, right: Formula) -> Formula:
    count = left.count
    return Formula(
        count,
        left.rows & right.rows,
        clauses=_all_of(left.clauses, right.clauses, count),
        denied=_one_of(left.denied, right.denied, count),
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
    """Parse a formula as the library does; None if it is not one of these letters.

    Signs bind in the order of `OPERATORS` and associate to the left.
    """
    signs = "".join(text.split())
    if len(signs) > MAX_TOKENS or not set(signs) <= {*letters, *OPERATORS, *"()"}:
        return None
    try:
        tree = ast.parse(signs.translate(_OF_PYTHON), mode="eval")
        return _formula(tree.body, letters)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
