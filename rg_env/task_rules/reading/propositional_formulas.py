"""Propositional formulas as text: `(P ∧ ¬Q) → R`.

The library takes any text between two operators for a variable and tries all 2^n
assignments, so `P`, `PP`, `PPP`, ... is a bomb made of one letter. Here every operand
is one capital letter. Its own check of the letters then bounds their number.

One pass over the text with a depth and a flag; linear.
"""

from __future__ import annotations

_NOT = "¬"
_BINARY = frozenset("∧∨→↔")  # noqa: RUF001 - the library's own signs
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def why_not_proposition(
    text: str, max_chars: int, max_operators: int, max_depth: int
) -> str | None:
    """Return why a text is no formula within the bounds, None where it is one.

    The library's parser is quadratic in the operators and recursive in the depth.
    """
    if len(text) > max_chars:
        return f"longer than {max_chars} characters"
    if sum(text.count(sign) for sign in _BINARY | {_NOT}) > max_operators:
        return f"more than {max_operators} operators"
    depth, operand_next = 0, True
    for char in text:
        if char in " \t\r\n":
            continue
        if operand_next:
            if char in _LETTERS:
                operand_next = False
            elif char == "(" and depth < max_depth:
                depth += 1
            elif char != _NOT:
                return f"{char!r} where a letter was expected"
        elif char in _BINARY:
            operand_next = True
        elif char == ")" and depth > 0:
            depth -= 1
        else:
            return f"{char!r} where an operator was expected"
    return "unfinished" if operand_next or depth else None
