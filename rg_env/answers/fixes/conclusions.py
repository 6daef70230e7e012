"""Conclusions of propositional_logic, and which of them are worth anything.

The library pays 1.0 for whatever follows from the premises and is no tautology. That is
true of one disjunction of two letters in 84 of 100 items, of the premises joined by ∧
in all, and of any formula where the premises contradict each other, as in 26 of 100.
Here a conclusion that follows is paid in full if it says what the library's example
says, or if it is

    strong      it implies the example, or it leaves fewer cases open than the example
                and less than half of all, or it is a letter, a negated letter or an
                implication of which no part follows alone
    concise     at most two connectives (or as many as the example has), or a list of
                letters and negated letters
    inferred    not each part of it, split at ∧, is equivalent to a premise

The library pays 0.25 for every single letter, also for one that took an inference;
such a letter is strong. A disjunction and an implication are the same thing here, a
clause; the weaker of two clauses that follow is the longer one.

Whatever else follows is paid less than the library's trivial answers. What a formula
leaves open is the set of its rows in the truth table, one bit each; nothing is
evaluated.
"""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Sequence

from rg_env.answers.fixes.scorer_fix import Entry, LibraryScore

TRIVIAL = 0.25
"""What the library pays for a single letter or a tautology."""

FOLLOWS = 0.1
"""What a conclusion is worth that follows and takes no inference: with more, a premise
or one formula of two letters earned 0.4 on average."""

MAX_TOKENS = 500
"""Signs of a formula; a premise of the highest level has 61 at most."""

CONCISE_CONNECTIVES = 2
CLAUSE_CONNECTIVES = 4
"""An implication between two letters, both negated, with room for one more sign."""

_BINDING = {"↔": 1, "→": 2, "∨": 3, "∧": 4, "¬": 5}  # noqa: RUF001
_SIGNS = frozenset(_BINDING) | set("()" + string.ascii_uppercase)


@dataclasses.dataclass(frozen=True)
class Formula:
    """A formula over given letters.

    Attributes:
        rows: The rows of the truth table in which it holds, one bit each.
        connectives: How many signs it has besides letters and brackets.
        parts: The rows of its parts, split at ∧ on the outside.
        only_literals: Whether each part is a letter or a negated letter.
    """

    rows: int
    connectives: int
    parts: tuple[int, ...]
    only_literals: bool


def tokens_of(text: str) -> list[str] | None:
    """Split a formula into its signs; None where there is anything else or too much."""
    signs = list("".join(text.split()))
    return signs if len(signs) <= MAX_TOKENS and _SIGNS.issuperset(signs) else None


def _letter(index: int, count: int) -> Formula:
    """Return the letter whose truth is bit `index` of the number of a row."""
    rows = sum(1 << row for row in range(1 << count) if row >> index & 1)
    return Formula(rows, 0, (rows,), only_literals=True)


def _negated(inner: Formula, every_row: int) -> Formula:
    rows = inner.rows ^ every_row
    literal = inner.only_literals and inner.connectives == 0
    return Formula(rows, inner.connectives + 1, (rows,), literal)


def _joined(sign: str, left: Formula, right: Formula, every_row: int) -> Formula:
    connectives = left.connectives + right.connectives + 1
    if sign == "∧":
        both = left.only_literals and right.only_literals
        rows = left.rows & right.rows
        return Formula(rows, connectives, left.parts + right.parts, both)
    rows = {
        "∨": left.rows | right.rows,  # noqa: RUF001
        "→": left.rows ^ every_row | right.rows,
        "↔": left.rows ^ right.rows ^ every_row,
    }[sign]
    return Formula(rows, connectives, (rows,), only_literals=False)


def _apply(sign: str, values: list[Formula], every_row: int) -> None:
    """Replace the last one or two formulas by what the sign makes of them."""
    right = values.pop()
    if sign == "¬":
        values.append(_negated(right, every_row))
    else:
        values.append(_joined(sign, values.pop(), right, every_row))


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
                _letter(self._letters.index(sign), len(self._letters))
            )
        elif starts:
            self._waiting.append(sign)
        else:
            self._apply_down_to(_BINDING.get(sign, 0))
            if sign == ")":
                return bool(self._waiting) and self._waiting.pop() == "("
            if sign not in _BINDING:
                return False
            self._waiting.append(sign)
        self._operand_next = sign not in self._letters
        return True

    def _apply_down_to(self, binding: int) -> None:
        """Apply the waiting signs that bind at least so strongly, to a bracket."""
        while self._waiting and _BINDING.get(self._waiting[-1], -1) >= binding:
            _apply(self._waiting.pop(), self._formulas, self._every_row)

    def finish(self) -> Formula | None:
        """Return the formula, None where it is unfinished."""
        if self._operand_next:
            return None
        self._apply_down_to(0)
        return None if self._waiting else self._formulas[0]


def read_formula(text: str, letters: Sequence[str]) -> Formula | None:
    """Read a formula as the library does.

    The signs bind in the order of `_BINDING`, the strongest being the negation, and
    equal ones to the left.

    Returns:
        None where the text is no formula of these letters.
    """
    reader = _Reader(letters)
    for sign in tokens_of(text) or [""]:
        if not reader.accept(sign):
            return None
    return reader.finish()


def _unbracketed(text: str) -> str:
    return "".join(text.split()).replace("(", "").replace(")", "")


def _is_shortest_clause(answer: Formula, known: int, count: int) -> bool:
    """Say whether an answer is a clause and no shorter part of it follows.

    A clause is false in the rows that agree in some letters, and only there. Without
    one of its letters it is false in their neighbours as well, and does not follow if
    one of those is possible.

    Args:
        answer: What follows.
        known: The rows in which every premise holds.
        count: How many letters there are.
    """
    false_rows = [row for row in range(1 << count) if not answer.rows >> row & 1]
    if not false_rows:
        return False
    first = false_rows[0]
    varying = 0
    for row in false_rows:
        varying |= row ^ first
    if len(false_rows) != 1 << varying.bit_count():
        return False
    fixed = [1 << index for index in range(count) if not varying >> index & 1]
    return all(any(known >> (row ^ bit) & 1 for row in false_rows) for bit in fixed)


def _is_worth_it(
    answer: Formula, example: Formula, premises: Sequence[Formula], count: int
) -> bool:
    """Say whether a conclusion is strong, concise and inferred; see the module."""
    most = max(CONCISE_CONNECTIVES, example.connectives)
    is_concise = answer.connectives <= most or answer.only_literals
    if {premise.rows for premise in premises}.issuperset(answer.parts):
        return False
    if is_concise and answer.rows == example.rows:
        return True
    known = (1 << (1 << count)) - 1
    for premise in premises:
        known &= premise.rows
    is_short = is_concise or answer.connectives <= CLAUSE_CONNECTIVES
    if is_short and _is_shortest_clause(answer, known, count):
        return True
    left_open = answer.rows.bit_count()
    return is_concise and (
        answer.rows & ~example.rows == 0
        or (left_open < example.rows.bit_count() and 2 * left_open < 1 << count)
    )


def score_conclusion(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score propositional_logic: a valid conclusion that takes an inference."""
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
    if _is_worth_it(found, example, premises, len(letters)):
        return 1.0
    return FOLLOWS


def premises_joined(entry: Entry) -> str:
    """Return all premises joined by ∧."""
    return " ∧ ".join(f"({premise})" for premise in entry["metadata"]["premises"])
