"""intermediate_integration: one antiderivative."""

from __future__ import annotations

from rg_env.task_rules.reading.antiderivatives import (
    INTEGRAL_BOUNDS,
    as_antiderivative,
    score_antiderivative,
    unevaluated_integral,
)
from rg_env.task_rules.reading.expressions import expression_guard
from rg_env.task_rules.rules import ScorerFix, TaskRules

RULES = TaskRules(
    "intermediate_integration",
    guard=expression_guard(
        INTEGRAL_BOUNDS,
        "elementary functions of x, and C; exponents to 5, up to 63 characters",
        simplifies=True,
    ),
    notation=as_antiderivative,
    fix=ScorerFix(
        scorer_sha256="8e765c309e3eb03c5eb9c1bb9cd5146ceb9a2cb13af3df1f2f354cad95b6e2ac",
        fault="`Integral(f, x)` and `integrate(f, x)` score 1.0 for every f.",
        proof=unevaluated_integral,
        proof_scores=1.0,
        score=score_antiderivative,
    ),
)
