"""The way back from a scrambled cube, in moves that the library's scorer reads.

The library gives an example solution for cubes of 3 alone. Every scramble is undone by
its moves in reverse; only the notation needs care, because the scorer drops moves that
begin with a number. A turn of the second layer, `2R`, is therefore written `Rw R'`.
"""

from __future__ import annotations

import re

_MOVE = re.compile(r"(\d*)([LRDUBF])(w?)('?)")


def _undone(move: str) -> list[str] | None:
    """Return the moves that undo one, None where no numberless move reaches it."""
    match = _MOVE.fullmatch(move)
    if match is None:
        return None
    number, face, wide, prime = match.groups()
    layer = int(number) if number else 1 + bool(wide)
    back, forth = ("", "'") if prime else ("'", "")
    if layer == 1:
        return [face + back]
    if layer == 2:
        both = f"{face}w{back}"
        return [both] if wide else [both, face + forth]
    return None


def unscramble(moves: str) -> str | None:
    """Return the answer that undoes a scramble.

    Args:
        moves: In Singmaster notation with spaces between, e.g. "R 2U' Lw".

    Returns:
        An answer of the same form without leading numbers; None where a move turns a
        layer deeper than the second.
    """
    undone: list[str] = []
    for move in reversed(moves.split()):
        back = _undone(move)
        if back is None:
            return None
        undone += back
    return " ".join(undone)
