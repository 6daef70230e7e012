"""intermediate_integration: one antiderivative."""

from __future__ import annotations

from rg_env.task_rules.reading.antiderivatives import integration_rules

RULES = integration_rules(
    "intermediate_integration",
    "elementary functions of x, and C; exponents to 5, up to 63 characters",
    "8e765c309e3eb03c5eb9c1bb9cd5146ceb9a2cb13af3df1f2f354cad95b6e2ac",
)
