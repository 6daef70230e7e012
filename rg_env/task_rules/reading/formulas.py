r"""Formulas of propositional logic: `(P ∧ ¬Q) → R`.

Read are the signs that the question names, and others that people write for them. A
formula is known by its rows in the truth table, one bit each; nothing is evaluated.
"""

# ruff: noqa: RUF001 - the library's own signs

from __future__ import annotations

import dataclasses
import functools
import operator
import re
from collections.abc import Sequence

from rg_env.task_rules.rules import Entry

# -- notation -----------------------------------------------------------------------

MAX_CHARS = 4_000
_END = r"(?![A-Za-z])"
_CONNECTIVES = {
    "\u2194": rf"<-+>|<=+>|\\(?:leftrightarrow|Leftrightarrow|iff){_END}"
    r"|[\u21d4\u27f7\u27fa\u2261]|\b(?:iff|IFF|if and only if)\b",
    "\u2192": rf"-+>|=+>|\\(?:rightarrow|Rightarrow|to|implies|supset){_END}"
    r"|[\u21d2\u27f6\u27f9\u2283]|\b(?:implies|IMPLIES)\b",
    "\u2227": rf"&&?|/\\|\\(?:land|wedge|cdot){_END}|\b(?:and|AND)\b",
    "\u2228": rf"\|\|?|\\/|\\(?:lor|vee){_END}|\b(?:or|OR)\b"
    r"|(?<=[A-Z)\s])v(?=[A-Z(\s\u00ac~!])",
    "\u00ac": rf"[~!\uff5e\u223c]|\\(?:neg|lnot|sim){_END}|\b(?:not|NOT)\b",
}
_BRACKETS = str.maketrans("[]", "()")
_FIRST = re.compile(
    r"^(?:\u2234|\\therefore\b|\u22a2|\u22a8|\\vdash\b|(?:therefore|thus|hence)\b)\s*",
    re.I,
)
_WRITTEN_SIGNS = [(re.compile(signs), sign) for sign, signs in _CONNECTIVES.items()]


def as_formula(answer: str, entry: Entry) -> str:
    """Write a formula with the connectives that its question names."""
    if len(answer) > MAX_CHARS:
        return answer
    text = _FIRST.sub("", answer.strip())
    for signs, sign in _WRITTEN_SIGNS:
        text = signs.sub(sign, text)
    return text.translate(_BRACKETS)


# -- truth table -----------------------------------------------------------------------

MAX_TOKENS = 500
"""Signs of a formula; a premise of the highest level has 61 at most."""

BINDING = {"↔": 1, "→": 2, "∨": 3, "∧": 4, "¬": 5}
"""How strongly each sign binds."""

Pieces = dict[int, int]
"""Rows of the pieces of a formula, each with the number of its letters."""


@dataclasses.dataclass(frozen=True)
class Formula:
    """A formula over given letters.

    Attributes:
        rows: The rows of the truth table in which it holds, one bit each.
        parts: Its pieces, split at ∧; equal ones are one.
        options: Its pieces, split at the sign for "or"; equal ones are one.
    """

    rows: int
    parts: Pieces
    options: Pieces

    @property
    def letters(self) -> int:
        """The number of letters that it is written with."""
        return sum(self.parts.values())


@functools.cache
def letter_formula(index: int, count: int) -> Formula:
    """Return the letter whose truth is bit `index` of the number of a row."""
    rows = sum(1 << row for row in range(1 << count) if row >> index & 1)
    return Formula(rows, {rows: 1}, {rows: 1})


def _negated(inner: Formula, every_row: int) -> Formula:
    parts, options = (
        {rows ^ every_row: letters for rows, letters in pieces.items()}
        for pieces in (inner.options, inner.parts)
    )
    return Formula(inner.rows ^ every_row, parts, options)


def _joined(sign: str, left: Formula, right: Formula, every_row: int) -> Formula:
    if sign == "∧":
        rows, parts = left.rows & right.rows, left.parts | right.parts
        return Formula(rows, parts, {rows: sum(parts.values())})
    if sign == "↔":
        rows = left.rows ^ right.rows ^ every_row
        both = {rows: left.letters + right.letters}
        return Formula(rows, both, both)
    options = left.options
    if sign == "→":
        options = {left.rows ^ every_row: left.letters}
    options = options | right.options
    rows = functools.reduce(operator.or_, options)
    return Formula(rows, {rows: sum(options.values())}, options)


class _Reader:
    """Formulas that were read and signs that wait for what stands behind them."""

    def __init__(self, letters: Sequence[str]) -> None:
        self._letters = letters
        self._every_row = (1 << (1 << len(letters))) - 1
        self._formulas: list[Formula] = []
        self._waiting: list[str] = []
        self._operand_next = True

    def accept(self, sign: str) -> bool:
        """Take the next sign; return whether it may stand here."""
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
        """Apply the waiting signs that bind at least so strongly, to a bracket."""
        while self._waiting and BINDING.get(self._waiting[-1], -1) >= binding:
            sign, right = self._waiting.pop(), self._formulas.pop()
            if sign == "¬":
                made = _negated(right, self._every_row)
            else:
                made = _joined(sign, self._formulas.pop(), right, self._every_row)
            self._formulas.append(made)

    def finish(self) -> Formula | None:
        """Return the formula, None where it is unfinished."""
        if self._operand_next:
            return None
        self._apply_down_to(0)
        return None if self._waiting else self._formulas[0]


def read_formula(text: str, letters: Sequence[str]) -> Formula | None:
    """Read a formula as the library does.

    The signs bind in the order of `BINDING`, the strongest being the negation, and
    equal ones to the left.

    Returns:
        None where the text is no formula of these letters.
    """
    signs = "".join(text.split())
    reader = _Reader(letters)
    if len(signs) > MAX_TOKENS or not all(map(reader.accept, signs)):
        return None
    return reader.finish()
