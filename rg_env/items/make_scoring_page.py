"""Writes docs/scoring.md: `python -m rg_env.items.make_scoring_page`.

The page is made of the tables in `answers`, and of the installed library, which says
which tasks have its base scorer. A test compares the two, so run this when a fix, a
guard or reasoning-gym changes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rg_env.items.markdown_table import markdown_table
from rg_env.task_rules.fixes.fix_table import FIXES
from rg_env.task_rules.fixes.library_expectations import OTHER_SCORES, PAID_IN_FULL
from rg_env.task_rules.guards import GUARDS
from rg_env.tasks import library

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scoring.md"

TEXT = """\
# What stands between an answer and its score

Written from the tables in `rg_env/task_rules/` and from reasoning-gym {version} by
`python -m rg_env.items.make_scoring_page`.

An answer goes through three steps, all of them in a worker process with a deadline:

1. Longer than `max_answer_chars`, or not what an honest answer to the task can hold
   (the guards below): `refused`, score 0. The text is read and never evaluated.
2. The library's scorer gives its score, bare and tagged.
3. Where that scorer has a known fault, the corrected score counts instead (the fixes
   below), unless `scorer_fixes` is false. A fix holds for the scorer that it was
   written for; if the installed library has another one, the fault is looked for
   again first, and the log says what was found.

## Guards ({num_guards})

{guards}

## The base scorer ({num_base_tasks} tasks)

A dataset of the library that has no scorer of its own has the base scorer. It pays 1
for the right answer and, by its length, for any text that contains it: 0.5 for `-5` or
`50` where 5 is right, 0.4 for `True False` whichever is right. One rule corrects it,
also in a task that a later version of the library brings: that credit is for the right
answer with nothing but words around it that can be no second answer, as in
`The answer is 5.` or `x = 5`.

{base_tasks}.

## Fixes of other scorers ({num_fixes})

{fixes}

## Where the library's own tests expect another score

The tests of reasoning-gym {version} ask its scorers for many scores. With the guards
and the corrected scorers {num_failing} of these tests fail, because the answer earns
nothing:

{other_scores}

With answers normalized, {num_paid} fail because their answer is right: {paid_in_full}.
"""


def page() -> str:
    """Return the text of the page."""
    described = library.describe()
    base_tasks = [task for task in described.tasks if library.has_base_scorer(task)]
    guards = markdown_table(
        ("Task", "What its scorer does with text", "What an honest answer holds"),
        [(g.task, g.danger, g.honest) for _, g in sorted(GUARDS.items())],
    )
    fixes = markdown_table(
        ("Task", "Fault of the library's scorer", "Found in"),
        [(f.task, f.fault, f.library_version) for _, f in sorted(FIXES.items())],
    )
    other_scores = markdown_table(
        ("Tasks", "Answer", "Expected", "Reason"),
        [(", ".join(o.tasks), o.answer, o.expected, o.reason) for o in OTHER_SCORES],
    )
    return TEXT.format(
        version=described.version,
        num_guards=len(GUARDS),
        guards=guards,
        num_base_tasks=len(base_tasks),
        base_tasks=", ".join(base_tasks),
        num_fixes=len(FIXES),
        fixes=fixes,
        num_failing=sum(len(other.tasks) for other in OTHER_SCORES),
        other_scores=other_scores,
        num_paid=sum(len(tasks) for tasks, _ in PAID_IN_FULL),
        paid_in_full="; ".join(f"{what} ({', '.join(t)})" for t, what in PAID_IN_FULL),
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")
