r"""Parses formulas of propositional logic: `(P ∧ ¬Q) → R`.

The parser knows the signs that the question names, and others that people write for
them. It computes the rows of the truth table as bits and evaluates no text.
"""

# ruff: noqa: RUF001 - the library's own signs

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Sequence

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

BINDING = {"↔": 1, "→": 2, "∨": 3, "∧": 4, "¬": 5}
"""Operator precedence."""

Clauses = frozenset[int]
"""Clauses by their letters: bit `n` for letter n, bit `n + count` for its negation."""

# A formula with more clauses is rejected. A premise of the highest level has at most
# 58, and the premises of an item 79.
MOST_CLAUSES = 200

# Most pairs of clauses in one join, so that no formula takes more than a second.
MOST_PAIRS = 2_000


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
    return frozenset(kept) if len(kept) <= MOST_CLAUSES else None


def _all_of(left: Clauses | None, right: Clauses | None, count: int) -> Clauses | None:
    if left is None or right is None:
        return None
    return _needed(left | right, count)


def _one_of(left: Clauses | None, right: Clauses | None, count: int) -> Clauses | None:
    if left is None or right is None or len(left) * len(right) > MOST_PAIRS:
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


def _joined(sign: str, left: Formula, right: Formula) -> Formula:
    if sign == "\u2227":
        return _both(left, right)
    if sign == "\u2228":
        return negated(_both(negated(left), negated(right)))
    implied = negated(_both(left, negated(right)))
    if sign == "\u2192":
        return implied
    return _both(implied, negated(_both(right, negated(left))))


class _FormulaReader:
    """A shunting-yard parser: parsed formulas, and signs that wait for an operand."""

    def __init__(self, letters: Sequence[str]) -> None:
        self._letters = letters
        self._formulas: list[Formula] = []
        self._waiting: list[str] = []
        self._operand_next = True

    def accept(self, sign: str) -> bool:
        """Take the next sign; return whether it is allowed here."""
        starts = sign in ("(", "¬") or sign in self._letters
        if starts != self._operand_next:
            return False
        if sign in self._letters:
            self._formulas.append(
                letter_formula(self._letters.index(sign), len(self._letters))
            )
        elif starts:
            self._waiting.append(sign)
        else:
            self._apply_down_to(BINDING.get(sign, 0))
            if sign == ")":
                return bool(self._waiting) and self._waiting.pop() == "("
            if sign not in BINDING:
                return False
            self._waiting.append(sign)
        self._operand_next = sign not in self._letters
        return True

    def _apply_down_to(self, binding: int) -> None:
        """Apply the waiting signs of at least this precedence, up to a bracket."""
        while self._waiting and BINDING.get(self._waiting[-1], -1) >= binding:
            sign = self._waiting.pop()
            right = self._formulas.pop()
            if sign == "¬":
                formula = negated(right)
            else:
                formula = _joined(sign, self._formulas.pop(), right)
            self._formulas.append(formula)

    def finish(self) -> Formula | None:
        """Return the formula, None if it is unfinished."""
        if self._operand_next:
            return None
        self._apply_down_to(0)
        return None if self._waiting else self._formulas[0]


def read_formula(text: str, letters: Sequence[str]) -> Formula | None:
    """Parse a formula as the library does; None if it is not one of these letters.

    Signs bind in the order of `BINDING` and associate to the left.
    """
    signs = "".join(text.split())
    reader = _FormulaReader(letters)
    if len(signs) > MAX_TOKENS or not all(map(reader.accept, signs)):
        return None
    return reader.finish()
