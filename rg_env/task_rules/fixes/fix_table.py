"""Every fix that is written for one task, in the module of the task's category.

Which of them apply to the installed library is decided elsewhere, and so is which
tasks have the fix of the base scorer instead; this is the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from rg_env.task_rules.fixes import (
    code_fixes,
    cognition_fixes,
    games_fixes,
    geometry_fixes,
    graphs_fixes,
    logic_fixes,
    probability_fixes,
)
from rg_env.task_rules.scorer_fix import ScorerFix

FIXES: Mapping[str, ScorerFix] = {
    fix.task: fix
    for fix in chain(
        code_fixes.FIXES,
        cognition_fixes.FIXES,
        games_fixes.FIXES,
        geometry_fixes.FIXES,
        graphs_fixes.FIXES,
        logic_fixes.FIXES,
        probability_fixes.FIXES,
    )
}
"""Task to its fix; a task has one at most."""
