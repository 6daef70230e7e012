"""Writes docs/scoring.md: `python -m tools.make_scoring_page`.

The page is made of the rows in `rg_env/task_rules/`, and of the installed library,
which says which tasks have its base scorer. A test compares the two, so run this when a
fix, a guard or reasoning-gym changes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from rg_env.task_rules.table import TABLE
from rg_env.tasks import library

PAGE = Path(__file__).resolve().parents[1] / "docs" / "scoring.md"

TEXT = """\
# What stands between an answer and its score

`python -m tools.make_scoring_page` writes this page from the rows in
`rg_env/task_rules/` and from reasoning-gym {version}.

A guard rejects what no correct answer to the task can hold, and what is longer than
`max_answer_chars`: score 0. The library's scorer scores the rest. Where it has a known
fault, a fix corrects the score, unless `scorer_fixes` is false; in another version of
the scorer the fault is checked again, and the log says the result. Where a task has a
fix, an answer that is not right scores 0.5 at most, and nothing for what a copy of the
question or a constant has right as well.

## Guards ({num_guards})

What a scorer does with text, and what of it is admitted:

{guards}

## The base scorer ({num_base_tasks} tasks)

A dataset without a scorer of its own has the base scorer. It scores any text that
contains the right answer by its length: 0.5 for `-5` or `50` where 5 is right, 0.4
for `True False`. One rule corrects it, also in tasks of a later version: that credit
is for the right answer with nothing but words around it that can be no second answer.

{base_tasks}.

## Fixes of other scorers ({num_fixes})

What the library's scorer does wrong:

{fixes}

## Where the library's own tests expect another score

{num_failing} tests of reasoning-gym {version}; `other_scores` of a task's row has the
reason:

{other_tasks}.
"""


def by_tasks(rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return rows that begin with a task, those of equal cells as one of all tasks."""
    tasks: dict[tuple[str, ...], list[str]] = {}
    for task, *cells in rows:
        tasks.setdefault(tuple(cells), []).append(task)
    return [(", ".join(names), *cells) for cells, names in tasks.items()]


def page() -> str:
    """Return the text of the page."""
    described = library.describe()
    base_tasks = [task for task in described.tasks if library.has_base_scorer(task)]
    rows = sorted(TABLE.items())
    guards = [(task, row.guard) for task, row in rows if row.guard]
    fixes = [(task, row.fix) for task, row in rows if row.fix]
    others = [(task, other) for task, row in rows for other in row.other_scores]
    return TEXT.format(
        version=described.version,
        num_guards=len(guards),
        guards="\n".join(
            f"- {task}: {guard.danger}. Admitted: {guard.admitted}"
            for task, guard in guards
        ),
        num_base_tasks=len(base_tasks),
        base_tasks=", ".join(base_tasks),
        num_fixes=len(fixes),
        fixes="\n".join(
            f"- {tasks}: {fault}"
            for tasks, fault in by_tasks((task, fix.fault) for task, fix in fixes)
        ),
        num_failing=len(others),
        other_tasks=", ".join(dict.fromkeys(task for task, _ in others)),
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")
