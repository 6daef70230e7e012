"""Every check of an item, and the question whether one finds a fault."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from rg_env.task_rules.item_checks import given_away, wrong_golds
from rg_env.task_rules.item_checks.item_check import ItemCheck


def _by_task(checks: Sequence[ItemCheck]) -> Mapping[str, tuple[ItemCheck, ...]]:
    table: dict[str, tuple[ItemCheck, ...]] = defaultdict(tuple)
    for check in checks:
        table[check.task] += (check,)
    return dict(table)


CHECKS: Mapping[str, tuple[ItemCheck, ...]] = _by_task(
    [*wrong_golds.CHECKS, *given_away.CHECKS]
)
"""Task to its checks; most have none."""
