"""puzzle24: sums of four numbers, with most of the rules of countdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from rg_env.task_rules.games.countdown import Expression, symbols
from rg_env.task_rules.reading.expressions import expression_guard
from rg_env.task_rules.reading.sums import SUM_BOUNDS, as_sum, score_sum
from rg_env.task_rules.rules import FasterFunction, ScorerFix, TaskRules


class _Candidate:
    """A formula as puzzle24 uses it, built when it is written out."""

    def __init__(self, expression: Expression, symbols: Sequence[Any]) -> None:
        self._expression = expression
        self._symbols = symbols

    def subs(self, values: Mapping[Any, int]) -> int:
        return self._expression.value

    def __str__(self) -> str:
        return str(self._expression.formula(self._symbols))


def _generate_candidate(dataset: Any, rng: Random, count: int) -> tuple[Any, ...]:
    expression = Expression(rng, dataset.config, count)
    named = symbols("x:{}", count)
    return _Candidate(expression, named), expression.numbers, named


_LIBRARY = "reasoning_gym.games.puzzle24"
RULES = TaskRules(
    "puzzle24",
    guard=expression_guard(SUM_BOUNDS, "four whole numbers, + - * / ( )"),
    notation=as_sum,
    fix=ScorerFix(
        scorer_sha256="85c06b47c043171afbd9470630dd601aedd90a5e0807ad4e74da1ad7b20c59d3",
        fault="Does not compare the numbers used with those given; drops fractions.",
        score=score_sum,
    ),
    faster=(
        FasterFunction(
            _LIBRARY,
            "Puzzle24Dataset._generate_candidate_expression",
            "585d662564f5cdb9",
            lambda own: _generate_candidate,
            {f"{_LIBRARY}:Puzzle24Dataset.__getitem__": "46c45afc635fb582"},
        ),
    ),
)
