"""Decides which expressions may be parsed by sympy, and bounds their size.

The library passes answers to `sympy.parse_expr`, which is Python's `eval` with all of
sympy as its namespace. So this parser admits only numbers, listed names, listed
functions of one argument, `+ - * / ^ **` and parentheses, in a valid order. It admits
no attribute, other call, keyword, string, bracket, comparison or comment.

sympy computes constants exactly when it parses them, and `9**9**9` has 370 million
digits. So the parser computes an upper bound of the numerator, the denominator and the
degree of each part. A name counts as 1, because it can only cancel.

Not covered: the time that sympy takes to simplify an admitted expression. It has no
useful bound; the deadline of scoring ends it.

Example:
    >>> why_not_expression("9**9**9", ExpressionBounds(powers=True))
    'an exponent is too large'
"""

from __future__ import annotations

import dataclasses
import math
import re

from rg_env.task_rules.rules import Guard

_TOKEN = re.compile(
    r"[ \t\n\r]*(?:(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"|(?P<name>[A-Za-z]+)|(?P<sign>\*\*|[-+*/^()])|(?P<other>[^ \t\n\r]))"
)
_LOG2_E = math.log2(math.e)
_LOG2_10 = math.log2(10)
# The largest numerator or denominator, in bits.
_MAX_BITS = 4096.0
# The deepest nesting of parentheses and exponents.
_MAX_DEPTH = 16
# Exponents are halves, thirds, quarters or decimals like 0.25: at most 1/1024.
_MAX_ROOT_BITS = 10.0
_INVERSE_OF_EXP = frozenset({"log", "ln"})
_GROWS_LIKE_EXP = frozenset({"exp", "sinh", "cosh", "tanh"})


@dataclasses.dataclass(frozen=True)
class ExpressionBounds:
    """The bounds of one task's expressions.

    Attributes:
        names: Symbols and constants.
        functions: Functions of one argument.
        powers: Whether `**` and `^` are admitted.
        decimals: Whether `2.5` is admitted; `2.` always is.
        max_chars: Characters of a text, at most.
        max_digits: Digits of a number, at most.
        max_tokens: Numbers, names and signs of a text, at most.
        max_exponent: The largest absolute value of an exponent.
        max_degree: The largest degree; a function adds 1 to the degree of its argument.
    """

    names: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    powers: bool = False
    decimals: bool = True
    max_chars: int = 240
    max_digits: int = 20
    max_tokens: int = 120
    max_exponent: int = 20
    max_degree: int = 24


class _RejectedError(Exception):
    """Ends the parser with the reason of a rejection."""


@dataclasses.dataclass(frozen=True)
class _Size:
    """An upper bound: log2 of the numerator, log2 of the denominator, the degree."""

    top: float
    bottom: float
    degree: float

    def plus(self, other: _Size) -> _Size:
        bottom = self.bottom + other.bottom
        top = 1 + max(self.top + other.bottom, other.top + self.bottom)
        return _Size(top, bottom, max(self.degree, other.degree))

    def times(self, other: _Size) -> _Size:
        return _Size(
            self.top + other.top, self.bottom + other.bottom, self.degree + other.degree
        )

    def over(self, other: _Size) -> _Size:
        return self.times(_Size(other.bottom, other.top, other.degree))

    def power(self, exponent: float) -> _Size:
        # A negative exponent swaps numerator and denominator.
        larger = max(self.top, self.bottom) * exponent
        return _Size(larger, larger, self.degree * max(1.0, exponent))

    def of_function(self, name: str) -> _Size:
        """Bound f(self); sympy simplifies `tan(atan(n))` and `exp(log(n))` to n."""
        degree = self.degree + 1
        if name in _INVERSE_OF_EXP:
            # The logarithm of 1.000000001 is about 1e-9: small for a long number.
            carried = 1 + max(self.top, self.bottom)
            return _Size(math.log2(1 + carried), carried, degree)
        if name in _GROWS_LIKE_EXP:
            bits = _LOG2_E * 2 ** min(self.top, 60.0)
            return _Size(bits, bits, degree)
        larger = 1 + 2 * max(self.top, self.bottom)
        return _Size(larger, larger, degree)


_SYMBOL = _Size(0.0, 0.0, 1.0)
_CONSTANTS = {"E": _Size(_LOG2_E, 0.0, 0.0), "pi": _Size(math.log2(math.pi), 0.0, 0.0)}


def _size_of_number(text: str) -> _Size:
    digits = text.replace(".", "").lstrip("0")
    _, _, decimals = text.partition(".")
    top = math.log2(int(digits)) if 0 < len(digits) < 9 else _LOG2_10 * len(digits)
    return _Size(top, _LOG2_10 * len(decimals), 0.0)


class _ExpressionReader:
    """A recursive-descent parser; every step consumes a token or raises."""

    def __init__(self, text: str, bounds: ExpressionBounds) -> None:
        self._bounds = bounds
        tokens = _TOKEN.finditer(text.rstrip(" \t\n\r"))
        self._tokens = [
            (match.lastgroup, match[match.lastgroup or 0]) for match in tokens
        ]
        self._tokens.append((None, "the end"))
        self._index = 0

    def read(self) -> None:
        if len(self._tokens) > self._bounds.max_tokens:
            raise _RejectedError("too many parts")
        self._sum(0)
        if self._tokens[self._index][0] is not None:
            raise self._unexpected()

    def _unexpected(self) -> _RejectedError:
        return _RejectedError(f"{self._tokens[self._index][1][:20]!r} is out of place")

    def _take(self, *signs: str) -> str | None:
        kind, text = self._tokens[self._index]
        if kind != "sign" or text not in signs:
            return None
        self._index += 1
        return text

    def _checked(self, size: _Size) -> _Size:
        if max(size.top, size.bottom) > _MAX_BITS:
            raise _RejectedError("a number in it would be too large")
        if size.degree > self._bounds.max_degree:
            raise _RejectedError("its degree would be too large")
        return size

    def _sum(self, depth: int) -> _Size:
        if depth > _MAX_DEPTH:
            raise _RejectedError("nested too deeply")
        size = self._product(depth)
        while self._take("+", "-"):
            size = self._checked(size.plus(self._product(depth)))
        return size

    def _product(self, depth: int) -> _Size:
        size = self._signed(depth)
        while sign := self._take("*", "/"):
            factor = self._signed(depth)
            size = size.times(factor) if sign == "*" else size.over(factor)
            self._checked(size)
        return size

    def _signed(self, depth: int) -> _Size:
        # Two signs are admitted: `3 - -2`.
        if self._take("+", "-"):
            self._take("+", "-")
        base = self._atom(depth)
        if not self._bounds.powers or not self._take("**", "^"):
            return base
        if depth >= _MAX_DEPTH:
            raise _RejectedError("nested too deeply")
        exponent = self._signed(depth + 1)
        # The denominator counts, too: x**(1/99999) is as hard for sympy as x**99999.
        is_large = exponent.top > math.log2(self._bounds.max_exponent)
        if is_large or exponent.bottom > _MAX_ROOT_BITS:
            raise _RejectedError("an exponent is too large")
        return self._checked(base.power(2**exponent.top))

    def _atom(self, depth: int) -> _Size:
        kind, text = self._tokens[self._index]
        if kind == "number":
            return self._number(text)
        if kind == "name":
            return self._name(text, depth)
        if not self._take("("):
            raise self._unexpected()
        return self._parenthesized(depth)

    def _parenthesized(self, depth: int) -> _Size:
        size = self._sum(depth + 1)
        if not self._take(")"):
            raise self._unexpected()
        return size

    def _number(self, text: str) -> _Size:
        self._index += 1
        if len(text) > self._bounds.max_digits:
            raise _RejectedError("a number has too many digits")
        if not self._bounds.decimals and text.partition(".")[2]:
            raise _RejectedError("a decimal number")
        return _size_of_number(text)

    def _name(self, name: str, depth: int) -> _Size:
        if name in self._bounds.functions:
            self._index += 1
            if not self._take("("):
                raise self._unexpected()
            return self._checked(self._parenthesized(depth).of_function(name))
        if name not in self._bounds.names:
            raise _RejectedError(f"the name {name[:20]!r} has no place in it")
        self._index += 1
        return _CONSTANTS.get(name, _SYMBOL)


def why_not_expression(text: str, bounds: ExpressionBounds) -> str | None:
    """Return why a text is not an expression within the bounds, None if it is one."""
    if len(text) > bounds.max_chars:
        return f"longer than {bounds.max_chars} characters"
    try:
        _ExpressionReader(text, bounds).read()
    except _RejectedError as rejection:
        return str(rejection)
    return None


def expression_guard(bounds: ExpressionBounds) -> Guard:
    """Return the guard of a scorer that passes the answer to sympy."""
    return Guard(
        lambda answer, gold: why_not_expression(answer, bounds), evaluates=True
    )
