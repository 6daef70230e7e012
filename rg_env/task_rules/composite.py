"""composite: a mixture, whose entries have the rules of the task that made them."""

from __future__ import annotations

from rg_env.task_rules.rules import Guard, TaskRules

RULES = TaskRules(
    "composite",
    guard=Guard(
        "as the task that made the entry",
        "as there",
        lambda answer, gold: "an entry of a mixture is guarded by its own task",
    ),
    fixed_level="it is a mixture; its items take the level of the task that made them",
)
