"""Solvers that judge an answer by the question alone, a module a kind of task."""

from tools.gold_solvers import boards, logic, numbers, words
from tools.gold_solvers.reading import Solver

SOLVERS: dict[str, Solver] = (
    numbers.SOLVERS | words.SOLVERS | boards.SOLVERS | logic.SOLVERS
)
"""Task to its solver."""
