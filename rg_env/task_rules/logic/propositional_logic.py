"""Conclusions of propositional_logic, and which of them are worth anything.

The library pays 1.0 for whatever follows from the premises and is no tautology. That is
true of one disjunction of two letters in 84 of 100 items, of the premises joined by ∧
in all, and of any formula where the premises contradict each other, as in 26 of 100.
Here a conclusion that follows is scored in full if a part of it, split at ∧, is

    inferred    it is no premise, or premises joined, with as many letters or more
    strong      none of the clauses that it implies follows without one of its letters,
                or it is the library's example in other words

`¬P ∧ Q` from `¬P` and `Q` states premises, `¬P → Q` from `P` is not strong, and
`¬(P ∧ Q)` from `(P ∧ Q) → ¬Q` is an inference, with fewer letters than its premise.

The library pays 0.25 for every single letter, also for one that took an inference;
such a letter is strong. Whatever else follows is paid less than the library's trivial
answers. A formula is known by its rows in the truth table, one bit each; nothing is
evaluated.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
import string
from collections.abc import Iterable, Iterator, Sequence

from rg_env.task_rules.scorer_fix import Entry, LibraryScore

TRIVIAL = 0.25
"""What the library pays for a single letter or a tautology."""

FOLLOWS = 0.1
"""What a conclusion is worth that follows and takes no inference: with more, a premise
or one formula of two letters earned 0.4 on average."""

MAX_TOKENS = 500
"""Signs of a formula; a premise of the highest level has 61 at most."""

MAX_LETTERS = 4
"""Different letters of a part that may be strong: it implies 3**4 clauses at most."""

_BINDING = {"↔": 1, "→": 2, "∨": 3, "∧": 4, "¬": 5}  # noqa: RUF001
_SIGNS = frozenset(_BINDING) | set("()" + string.ascii_uppercase)


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


def tokens_of(text: str) -> list[str] | None:
    """Split a formula into its signs; None where there is anything else or too much."""
    signs = list("".join(text.split()))
    return signs if len(signs) <= MAX_TOKENS and _SIGNS.issuperset(signs) else None


def _letter(index: int, count: int) -> Formula:
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


def _shorter_clauses(rows: int, count: int) -> Iterator[int]:
    """Yield the clauses that a formula implies, each less one of its letters.

    None of them follows from the formula, and none comes of one with too many letters.
    """
    every_row = (1 << (1 << count)) - 1
    letters = [_letter(index, count).rows for index in range(count)]
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
    if _is_inferred(found, example, premises, len(letters)):
        return 1.0
    return FOLLOWS


def premises_joined(entry: Entry) -> str:
    """Return all premises joined by ∧."""
    return " ∧ ".join(f"({premise})" for premise in entry["metadata"]["premises"])
