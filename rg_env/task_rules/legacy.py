"""Rows of tasks whose rules still stand in tables of their own."""

from __future__ import annotations

from rg_env.task_rules import rules as r
from rg_env.task_rules.fixes.fix_table import FIXES
from rg_env.task_rules.fixes.library_expectations import OTHER_SCORES
from rg_env.task_rules.guards import GUARDS
from rg_env.task_rules.item_checks.check_table import CHECKS
from rg_env.task_rules.scale_repairs import DEAD_KNOBS, NO_SCALE, REPAIRS
from rg_env.task_rules.solutions import IN_METADATA
from rg_env.task_rules.spelling_table import SPELLINGS

TASKS = sorted(
    {*FIXES, *GUARDS, *CHECKS, *DEAD_KNOBS, *NO_SCALE, *REPAIRS, *SPELLINGS}
    | {*IN_METADATA, *(task for row in OTHER_SCORES for task in row.tasks)}
)


def legacy_row(task: str) -> r.TaskRules:
    """Return the row of a task."""
    guard, fix, repair = GUARDS.get(task), FIXES.get(task), REPAIRS.get(task)
    return r.TaskRules(
        task,
        guard=guard  # type: ignore[arg-type]
        and r.Guard(
            guard.danger,
            guard.honest,
            guard.why_not,
            guard.danger.startswith(("calls eval", "calls sympy")),
        ),
        notation=SPELLINGS.get(task),
        kept_signs="\"'" if task == "codeio" else "",
        fix=fix  # type: ignore[arg-type]
        and r.ScorerFix(
            fix.scorer_sha256, fix.fault, fix.proof, fix.proof_pays, fix.score
        ),
        item_checks=tuple(
            r.ItemCheck(one.fault, one.is_faulty, one.always)
            for one in CHECKS.get(task, ())
        ),
        level_repair=repair  # type: ignore[arg-type]
        and r.LevelRepair(repair.overrides, repair.reason),
        fixed_level=NO_SCALE.get(task, "") or DEAD_KNOBS.get(task, ""),
        solution=IN_METADATA.get(task),
        other_scores=tuple(
            r.OtherScore(row.answer, row.expected, row.reason)
            for row in OTHER_SCORES
            if task in row.tasks
        ),
    )
