"""Every fix there is, by task.

Which of them apply to the installed library is decided elsewhere; this is the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from rg_env.answers.fixes import (
    algebra,
    algorithmic,
    arc_code_cognition,
    arithmetic,
    games,
    others,
)
from rg_env.answers.fixes.fix import ScorerFix

FIXES: Mapping[str, ScorerFix] = {
    fix.task: fix
    for fix in chain(
        algebra.FIXES,
        algorithmic.FIXES,
        arithmetic.FIXES,
        arc_code_cognition.FIXES,
        games.FIXES,
        others.FIXES,
    )
}
"""Task to its fix; a task has one at most."""
