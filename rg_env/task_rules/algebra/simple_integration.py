"""simple_integration: one antiderivative."""

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
    "simple_integration",
    guard=expression_guard(
        INTEGRAL_BOUNDS,
        "elementary functions of x or X, and C; exponents to 10",
        simplifies=True,
    ),
    notation=as_antiderivative,
    fix=ScorerFix(
        scorer_sha256="25c67a197cbef4e232019e0c3dffb727c1df7d8690550f8147c71954e5f4d2b0",
        fault="`Integral(f, x)` and `integrate(f, x)` score 1.0 for every f.",
        proof=unevaluated_integral,
        proof_scores=1.0,
        score=score_antiderivative,
    ),
)
