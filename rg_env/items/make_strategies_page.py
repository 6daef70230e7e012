"""Writes docs/cheap_strategies.md: `python -m rg_env.items.make_strategies_page`.

The page is made of the shipped baselines and scales. A test compares the two, so run
this when `make_baselines` has measured again.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rg_env.items.guessing.strategies import PHRASES, STRATEGIES
from rg_env.items.make_baselines import FEW_ITEMS, FINALISTS, MANY_ITEMS
from rg_env.items.markdown_table import markdown_table
from rg_env.tasks.baselines import HIGHEST, WORTH_SHIPPING, Baseline, load_shipped
from rg_env.tasks.scales import Scale
from rg_env.tasks.scales import load_shipped as load_scales

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cheap_strategies.md"

NOTHING = "-"
"""What stands for a place at which nothing earns `WORTH_SHIPPING`."""

TEXT = """\
# What cheap strategies earn

What somebody is paid on average who does not solve what is asked, with the corrected
scorers and reasoning-gym {version}. `python -m rg_env.items.make_baselines` measured
it, and `python -m rg_env.items.make_strategies_page` writes this page from its table.

{num_strategies} strategies know the form of questions and no task: they repeat the
question or a part of it, pick one of what it names, fill grids and blanks with zeros or
at random, sort or reverse what is given. {num_phrases} texts such as `-1`, `True` and
`[]` are given whatever is asked, and so are the commonest right answers to other items
of the task and level.

At the library's defaults and at every step of a task's scale, all of them answer {few}
items. Where one earns something, the {finalists} best answer {many} others, in two
halves: which is the best is found on one half and what it earns on the other, and the
other way round, so that luck is not taken for a strategy. The standard error is at most
{error:.2f}.

`python benchmarks/cheap_strategies.py` shows every strategy at any level; for example
with `--tasks gcd "*sudoku" --levels default 0 0.5 1 --items 100`.

## What is taken off the rewards

With `reward_baseline: chance` these figures are the baselines of
[the rewards](answers_and_rewards.md#from-scores-to-rewards). An item has the one of its
task and parameters. The baseline is 0 where less than {worth} is earned, of items with
parameters of your own, of items from outside, and of tasks that another version of the
library has changed; the log names these at the start. None is above {highest}: a level
at which guessing earns more is of no use.

Where something earns more than 0.25, the task has few answers (two words, a handful of
numbers) or pays for parts of an answer. The first is chance, and no scorer can tell it
from knowing.

## By task

In {num_tasks} of {all_tasks} tasks something earns {worth} or more, those that pay most
first. The scale stands from its easiest step to its hardest; `{nothing}` is less than
{worth}. {unmeasured}

{table}
"""


Row = tuple[Baseline, ...]


def _highest(row: Row) -> Baseline:
    return max(row, key=lambda baseline: baseline.value)


def _shown(row: Row, params: Mapping[str, Any]) -> str:
    """Return the baseline of some parameters, with two digits."""
    found = [f"{one.value:.2f}" for one in row if one.params == params]
    return found[0] if found else NOTHING


def _cells(task: str, row: Row, scale: Scale | None) -> tuple[str, ...]:
    steps = () if scale is None or scale.is_dead else scale.steps
    of_steps = " ".join(_shown(row, step.params) for step in steps)
    strategy = _highest(row).strategy
    return task, _shown(row, {}), of_steps or "no scale", strategy


def page() -> str:
    """Return the text of the page."""
    shipped, scales = load_shipped(), load_scales().scales
    rows = {task: row for task, row in shipped.by_task.items() if row}
    missing = sorted(scales.keys() - shipped.by_task.keys())
    most_first = sorted(rows, key=lambda task: -_highest(rows[task]).value)
    return TEXT.format(
        version=shipped.library_version,
        num_strategies=len(STRATEGIES),
        num_phrases=len(PHRASES),
        few=FEW_ITEMS,
        many=MANY_ITEMS,
        finalists=FINALISTS,
        error=max(one.error for row in rows.values() for one in row),
        worth=WORTH_SHIPPING,
        highest=HIGHEST,
        nothing=NOTHING,
        num_tasks=len(rows),
        all_tasks=len(shipped.by_task),
        unmeasured=f"Not measured: {', '.join(missing)}." if missing else "",
        table=markdown_table(
            ("Task", "Defaults", "Scale", "What earns most where most is earned"),
            [_cells(task, rows[task], scales.get(task)) for task in most_first],
        ),
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")
