"""simple_integration: one antiderivative."""

from __future__ import annotations

from rg_env.task_rules.reading.antiderivatives import integration_rules

RULES = integration_rules(
    "simple_integration",
    "elementary functions of x or X, and C; exponents to 10",
    "25c67a197cbef4e232019e0c3dffb727c1df7d8690550f8147c71954e5f4d2b0",
)
