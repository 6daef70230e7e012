"""Answers that drive a simulation: how often they make it turn.

Text that is no move is left to the library, which gives it nothing; what is counted
here are the repetitions that a number beside a move asks for.
"""

from __future__ import annotations

import re

_CUBE_MOVE = re.compile(r"([^\d]*)(\d*)")
_CAR_MOVE = re.compile(r"[A-Z][+-](\d+)")


def _repetitions(digits: list[str], max_digits: int) -> int | None:
    """Return their sum, "" counting as 1; None where one has too many digits."""
    if any(len(number) > max_digits for number in digits):
        return None
    return sum(int(number) if number else 1 for number in digits)


def why_not_cube_moves(text: str, max_turns: int) -> str | None:
    """Return why a cube is not turned by this text (`R U' F2 ...`), None if it is."""
    matches = [_CUBE_MOVE.fullmatch(move) for move in text.split()]
    # What begins with a number, `2R`, is one turn.
    numbers = [match[2] if match else "" for match in matches]
    turns = _repetitions(numbers, max_digits=2)
    if turns is None:
        return "a move is repeated too often"
    return f"more than {max_turns} moves" if turns > max_turns else None


def why_not_car_moves(text: str, max_steps: int) -> str | None:
    """Return why no cars are moved by this text (`F+1 K-2 ...`), None if they are."""
    steps = _repetitions(_CAR_MOVE.findall(text), max_digits=2)
    if steps is None:
        return "a move is too long"
    return f"more than {max_steps} steps" if steps > max_steps else None
