"""How solvers read questions, search for solutions, and judge a gold answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, TypeVar

Solver = Callable[[str, str], bool]
"""(question, gold answer) to whether that is right, and by every reading of a question
that asks for one answer. It raises an error where it cannot read the question: then the
gold answer was not judged."""

Grid = list[list[Any]]

State = TypeVar("State")
Moves = Callable[[State], Iterable[tuple[str, State]]]
"""From a state to each move that is possible there, and the state after it."""


def computed(compute: Callable[[str], Any]) -> Solver:
    """Return the solver that knows the one right text."""
    return lambda question, gold: str(compute(question)) == gold.strip()


def one_of(readings: Callable[[str], set[str]]) -> Solver:
    """Return the solver that knows a right text for each reading of the question."""

    def solver(question: str, gold: str) -> bool:
        lines = [" ".join(line.split()) for line in gold.strip().splitlines()]
        return "\n".join(lines) in readings(question)

    return solver


def ways(start: State, moves: Moves[State]) -> Iterator[tuple[State, list[str]]]:
    """Yield each state that can be reached and the moves to it, the fewest first."""
    known: dict[State, list[str]] = {start: []}
    waiting = [start]
    for state in waiting:
        yield state, known[state]
        for move, after in moves(state):
            if after not in known:
                known[after] = [*known[state], move]
                waiting.append(after)


def followed(state: State, moves: Moves[State], path: Iterable[str]) -> State | None:
    """Return the state at the end of a path, None where a move is not possible."""
    for move in path:
        possible = dict(moves(state))
        if move not in possible:
            return None
        state = possible[move]
    return state


def found(pattern: str, text: str) -> tuple[str, ...]:
    """Return the groups of a pattern; raises `ValueError` where it is not there."""
    match = re.search(pattern, text, re.DOTALL)
    if match is None:
        raise ValueError(f"{pattern!r} is not in the question")
    return match.groups()


def integers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"-?\d+", text)]


def grid(text: str) -> list[list[str]]:
    """Return the cells of a grid whose rows are lines and whose cells are words."""
    return [line.split() for line in text.strip("\n").splitlines() if line.strip()]


def number_grid(text: str) -> list[list[int]]:
    return [[int(cell) for cell in row] for row in grid(text)]


def exact(expression: str) -> Fraction:
    """Compute a calculation with the four operations and powers, in fractions."""
    if re.search(r"//|[^\d\s.+*/()-]", expression):
        raise ValueError(f"{expression!r} is no arithmetic")
    written = re.sub(r"[\d.]+", r"Fraction('\g<0>')", expression)
    return eval(written.strip(), {"Fraction": Fraction})  # noqa: S307 - of these signs
