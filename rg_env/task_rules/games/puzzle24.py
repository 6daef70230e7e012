"""puzzle24: sums of four numbers, with most of the rules of countdown."""

from __future__ import annotations

from rg_env.task_rules.reading.expressions import expression_guard
from rg_env.task_rules.reading.sums import SUM_BOUNDS, as_sum, score_sum
from rg_env.task_rules.rules import ScorerFix, TaskRules

RULES = TaskRules(
    "puzzle24",
    guard=expression_guard(SUM_BOUNDS, "four whole numbers, + - * / ( )"),
    notation=as_sum,
    fix=ScorerFix(
        scorer_sha256="85c06b47c043171afbd9470630dd601aedd90a5e0807ad4e74da1ad7b20c59d3",
        fault="Does not compare the numbers used with those given; drops fractions.",
        proof=lambda entry: "1*2*3*4",
        score=score_sum,
    ),
)
