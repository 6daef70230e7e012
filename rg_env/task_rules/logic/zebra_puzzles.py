"""zebra_puzzles: whether clues leave one solution.

To make a puzzle, clues are taken away while one solution remains. The library writes
every clause of every clue as text, numbers them anew for each of a hundred tries and
looks for two solutions.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

from rg_env.task_rules.rules import FasterFunction, TaskRules

Clause = tuple[int, ...]
UNSATISFIABLE = "UNSAT"


class _Numbers(dict[str, int]):
    """Literal to its number, given when it is first asked for; "~" negates."""

    def __missing__(self, literal: str) -> int:
        is_negated = literal[0] == "~"
        self[literal] = number = -self[literal[1:]] if is_negated else len(self) + 1
        return number


class _Numbering:
    """The clauses of one puzzle in the solver's numbers, each made once."""

    def __init__(self, puzzle: Any) -> None:
        self._numbers = _Numbers()
        self._of_clues: dict[Any, list[Clause]] = {}
        self.always = [self._clause(clause) for clause in puzzle.constraints]
        self.not_the_known_one = tuple(
            -self._numbers[f"{element} {house}"]
            for element, house in puzzle.solution.items()
        )

    def _clause(self, literals: Iterable[str]) -> Clause:
        return tuple([self._numbers[literal] for literal in literals])

    def of_clue(self, clue: Any) -> list[Clause]:
        if clue not in self._of_clues:
            self._of_clues[clue] = [self._clause(clause) for clause in clue.as_cnf()]
        return self._of_clues[clue]


def _make_has_unique_solution(own: Any) -> Callable[[Any, Iterable[Any]], bool]:
    """Return `has_unique_solution`, which asks the solver once.

    The clues are true of the solution that the puzzle was made from, so there is one
    solution if and only if none is left when that one is forbidden.
    """
    solve = importlib.import_module("pycosat").solve

    def has_unique_solution(puzzle: Any, clues: Iterable[Any]) -> bool:
        if puzzle.solution is None:
            return bool(own(puzzle, clues))
        numbering = vars(puzzle).get("_numbering")
        if numbering is None:
            numbering = puzzle._numbering = _Numbering(puzzle)
        clauses = [*numbering.always, numbering.not_the_known_one]
        for clue in {*puzzle.clues, *clues}:
            clauses += numbering.of_clue(clue)
        return bool(solve(clauses) == UNSATISFIABLE)

    return has_unique_solution


RULES = TaskRules(
    "zebra_puzzles",
    unused_levels={5: "1 of 8 items were not ready after 20 s"},
    faster=(
        FasterFunction(
            "reasoning_gym.logic.contrib.logic_puzzle.generate",
            "has_unique_solution",
            "762ae55eada87943",
            _make_has_unique_solution,
        ),
    ),
)
