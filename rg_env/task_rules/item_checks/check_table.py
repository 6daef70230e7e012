"""Every check of an item, and the question whether one finds a fault."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from rg_env.task_rules.item_checks import given_away, wrong_golds
from rg_env.task_rules.item_checks.item_check import Entry, ItemCheck


def _by_task(checks: Sequence[ItemCheck]) -> Mapping[str, tuple[ItemCheck, ...]]:
    table: dict[str, tuple[ItemCheck, ...]] = defaultdict(tuple)
    for check in checks:
        table[check.task] += (check,)
    return dict(table)


CHECKS: Mapping[str, tuple[ItemCheck, ...]] = _by_task(
    [*wrong_golds.CHECKS, *given_away.CHECKS]
)
"""Task to its checks; most have none."""


def fault_of(task: str, entry: Entry, *, checked: bool = True) -> str | None:
    """Return what is wrong with an entry, None where nothing was found.

    A check that cannot read an entry, because the library is another version, finds
    nothing.

    Args:
        task: The registered task that made it.
        entry: The library's entry.
        checked: Whether all checks are made, or only those that are made always.
    """
    for check in CHECKS.get(task, ()):
        if (checked or check.always) and _has_fault(check, entry):
            return check.fault
    return None


def _has_fault(check: ItemCheck, entry: Entry) -> bool:
    try:
        return check.is_faulty(entry)
    except (AttributeError, LookupError, TypeError, ValueError):
        return False
