"""Writes docs/trivial_baselines.md: `python -m tools.make_strategies_page`.

The page is made of the shipped baselines and scales. A test compares the two, so run
this when `make_baselines` has measured again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.installation import PROJECT
from rg_env.library import scales
from rg_env.library.baselines import EASILY_GUESSED, TABLE
from tools import make_baselines as made
from tools.trivial_baselines.learned_guesses import GUESSES
from tools.trivial_baselines.strategies import PHRASES, STRATEGIES

PAGE = PROJECT / "docs" / "trivial_baselines.md"

NORMAL_95 = 1.96
NOTHING = "-"  # sorts before any digit

TEXT = """\
# Trivial baselines

A trivial baseline is the mean score of answers that are given without solving the item
(with corrected scorers and reasoning-gym {version}).

{num_strategies} strategies use the form of a question without knowing its task, as by
repeating a part of it or filling blanks; {num_learned} of them learn from the answers
to similar items. {num_phrases} fixed texts such as `-1`, the most common right answers,
and sums of the numbers are tried too. A forest learned on {learned} items chooses among
all these. The best of {finalists} finalists answers {measured} fresh items (at least
{least} where items are slow), from which come the figures and their 95 % intervals.

In {num_tasks} of {all_tasks} tasks, a strategy scores at least {worth}. In these, one
scores more than {shown_from}, so that scores say little about a model (`screen` and
`report` warn). The figures are those with the default parameters and, in parentheses,
the lowest and highest on the scale (`-`: less than {worth}; `python -m
tools.make_baselines`, 2026-11-24 to 27; `rg_env/library/baselines.json` has all):

{table}
"""


def _highest(row: Sequence[made.Baseline]) -> float:
    return max((baseline["value"] for baseline in row), default=0.0)


def _table_row(
    task: str, row: Sequence[made.Baseline], scale: scales.Scale | None
) -> str:
    def shown(params: Mapping[str, Any]) -> str:
        for one in row:
            if one["params"] == params:
                return f"{one['value']:.2f}±{NORMAL_95 * one['error']:.2f}"
        return NOTHING

    is_scaled = scale is not None and not scale.is_dead
    steps = [shown(s.params) for s in scale.steps] if scale and is_scaled else ["none"]
    strategy = max(row, key=lambda one: one["value"])["strategy"]
    return f"- {task}, {shown({})} ({min(steps)}, {max(steps)}): {strategy}"


def page() -> str:
    shipped = json.loads(TABLE.read_text(encoding="utf-8"))
    by_scale, tasks = scales.load_shipped().scales, shipped["tasks"]
    rows = {t: row["baselines"] for t, row in tasks.items() if row["baselines"]}
    ranked = sorted(rows, key=lambda task: -_highest(rows[task]))
    table = [
        _table_row(task, rows[task], by_scale.get(task))
        for task in ranked
        if _highest(rows[task]) > EASILY_GUESSED
    ]
    return TEXT.format(
        version=shipped["library_version"],
        num_strategies=len(STRATEGIES),
        num_learned=len(GUESSES),
        num_phrases=len(PHRASES),
        finalists=made.FINALISTS,
        measured=made.MEASURED_ON,
        least=min(one["items"] for row in rows.values() for one in row),
        worth=made.WORTH_SHIPPING,
        shown_from=EASILY_GUESSED,
        learned=made.LEARNED_ON,
        num_tasks=len(rows),
        all_tasks=len(tasks),
        table="\n".join(table),
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
