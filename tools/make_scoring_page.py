"""Writes docs/scoring.md: `python -m tools.make_scoring_page`.

The page is made of the rows in `rg_env/task_rules/`, and of the installed library,
which says which tasks have its base scorer. A test compares the two, so run this when a
fix, a guard or reasoning-gym changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from rg_env.library import datasets, registry
from rg_env.task_rules.table import TABLE

PAGE = Path(__file__).resolve().parents[1] / "docs" / "scoring.md"

TEXT = """\
# Guards and corrected scorers

`python -m tools.make_scoring_page` writes this page from `rg_env/task_rules/` and
reasoning-gym {version}.

Known faults of the library's scorers are corrected, unless `scorer_fixes` is false, so
that a wrong answer scores at most 0.5. A correction applies only to the scorer it was
written for; if the installed library has another one, the log names the task.

## Guards ({num_guards})

A guard rejects answers that contain something no right answer contains, before a scorer
evaluates them as code or computes for hours:

{guards}.

## The base scorer ({num_base_tasks} tasks)

The library's base scorer gives credit to any text that contains the right answer: 0.5
to `-5` or `50` if 5 is right. The corrected scorer gives this credit only if the other
words cannot be a second answer.

It is that of {base_tasks} and others.

## Fixes of other scorers ({num_fixes})

This is the main point of what the library's scorers do wrong.
`tests/task_rules/test_library_expectations.py` has the library's own tests that expect
other scores.

{fixes}
"""


def main_point(fault: str) -> str:
    """Return the first clause that describes a fault."""
    return re.split(r"; |: (?!`)|, and |, even |, but ", fault)[0]


def by_text(rows: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the second parts of rows by the first, which several rows may share."""
    found: dict[str, list[str]] = {}
    for text, part in rows:
        found.setdefault(text, []).append(part)
    return found


def page() -> str:
    described = registry.describe()
    base_tasks = [task for task in described.tasks if datasets.has_base_scorer(task)]
    rows = sorted(TABLE.items())
    guards = [task for task, row in rows if row.guard]
    fixes = [(task, row.fix) for task, row in rows if row.fix]
    return TEXT.format(
        version=described.version,
        num_guards=len(guards),
        guards=", ".join(guards),
        num_base_tasks=len(base_tasks),
        base_tasks=", ".join(base_tasks[::8]),
        num_fixes=len(fixes),
        fixes="\n".join(
            f"- {', '.join(tasks)}: {fault}"
            for fault, tasks in by_text(
                (main_point(fix.fault).rstrip("."), task) for task, fix in fixes
            ).items()
        ),
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
