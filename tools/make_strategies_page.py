"""Writes docs/trivial_baselines.md: `python -m tools.make_strategies_page`.

The page is made of the shipped baselines and scales. A test compares the two, so run
this when `make_baselines` has measured again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env.tasks.baselines import (
    EASILY_GUESSED,
    Baseline,
    load_shipped,
)
from rg_env.tasks.scales import Scale
from rg_env.tasks.scales import load_shipped as load_scales
from tools.make_baselines import (
    CHOSEN_ON,
    FINALISTS,
    HIGHEST,
    LEARNED_ON,
    MEASURED_ON,
    SCREENED_ON,
    WORTH_MEASURING,
    WORTH_SHIPPING,
)
from tools.trivial_baselines.learned_guesses import GUESSES
from tools.trivial_baselines.strategies import PHRASES, STRATEGIES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "trivial_baselines.md"

NORMAL_95 = 1.96
"""Standard errors from a mean to either end of its 95 % interval."""

BY_FEATURES = """acre, binary_alternation,
knights_knaves, list_functions, mahjong_puzzle and tsumego"""
"""Tasks that were measured since a strategy is chosen by features of the question."""

NOTHING = "-"
"""Where nothing scores `WORTH_SHIPPING`; it sorts before any digit."""

NO_SCALE = "none"

TEXT = """\
# Trivial baselines

A trivial baseline is the mean score of answers that are given without solving the item,
here with corrected scorers and reasoning-gym {version}. With [`reward_baseline:
chance`](answers_and_rewards.md#from-scores-to-rewards), it is subtracted from the
rewards. The subtracted value is at most {highest}. It is 0 if the baseline is below
{worth}, if you set dataset parameters, or if the installed library has another version
of the task.

{num_strategies} strategies use the form of a question without knowing its task: they
repeat a part of it, pick something that it mentions, fill grids and blanks, sort, or
reverse; {num_learned} of them learn from the answers to similar items. {num_phrases}
fixed texts such as `-1`, `True` and `[]`, the most common right answers to other
items, and sums of the numbers are tried too. One more strategy chooses among all these
by counts and likenesses in the question, with a forest learned on {learned} items. On
{screened} items, the best {finalists} are chosen (if one scores {worth_measuring} or
more), and on {chosen} more the best one, which then answers {measured} more (at least
{least} where items are slow). The figures and their 95 % intervals come from these.

In {num_tasks} of {all_tasks} tasks, a strategy scores at least {worth}. These are the
tasks in which one scores more than {shown_from}, so that scores say little about a
model (`screen` and `report` warn), with the strategy behind the highest figure
(`{nothing}`: less than {worth}; `python -m tools.make_baselines`, {measured_in};
`rg_env/tasks/baselines.json` has all figures, and `python -m
tools.make_strategies_page` writes this page):

| Task | Defaults | Lowest and highest on the scale | Strategy |
|---|--:|--:|---|
{table}

The choice by features was measured in {by_features}. In others,
features may score more: in circuit_logic, course_schedule, game_of_life_halting,
isomorphic_strings, ransom_note and syllogism, a single one decides most items; in maze
and mini_sudoku, it decides many; and in number_sequence, they scored 0.68±0.05 on 300
items at the defaults.
"""

MEASURED_IN = "2026-11-24 to 27"
"""When `baselines.json` was made."""


Row = Sequence[Baseline]


def _highest(row: Row) -> float:
    return max((baseline.value for baseline in row), default=0.0)


def _figures(row: Row, scale: Scale | None) -> tuple[str, str, str]:
    """Return the figures of the defaults and of the steps that score least and most."""

    def shown(params: Mapping[str, Any]) -> str:
        found = [one for one in row if one.params == params]
        if not found:
            return NOTHING
        return f"{found[0].value:.2f}±{NORMAL_95 * found[0].error:.2f}"

    if scale is None or scale.is_dead:
        return shown({}), NO_SCALE, NO_SCALE
    steps = [shown(step.params) for step in scale.steps]
    return shown({}), min(steps), max(steps)


def _table_row(task: str, row: Row, scale: Scale | None) -> str:
    strategy = max(row, key=lambda one: one.value).strategy.replace("|", r"\|")
    defaults, *steps = _figures(row, scale)
    return f"| {task} | {defaults} | {', '.join(steps)} | {strategy} |"


def page() -> str:
    shipped, scales = load_shipped(), load_scales().scales
    by_task = shipped.by_task
    rows = {task: row.baselines for task, row in by_task.items() if row.baselines}
    ranked = sorted(rows, key=lambda task: -_highest(rows[task]))
    shown = [t for t in ranked if _highest(rows[t]) > EASILY_GUESSED]
    figures = [one for row in by_task.values() for one in row.baselines]
    return TEXT.format(
        version=shipped.library_version,
        num_strategies=len(STRATEGIES),
        num_learned=len(GUESSES),
        num_phrases=len(PHRASES),
        screened=SCREENED_ON,
        worth_measuring=WORTH_MEASURING,
        finalists=FINALISTS,
        chosen=CHOSEN_ON,
        measured=MEASURED_ON,
        least=min(one.items for one in figures),
        worth=WORTH_SHIPPING,
        highest=HIGHEST,
        nothing=NOTHING,
        shown_from=EASILY_GUESSED,
        learned=LEARNED_ON,
        by_features=BY_FEATURES,
        measured_in=MEASURED_IN,
        num_tasks=len(rows),
        all_tasks=len(by_task),
        table="\n".join(
            _table_row(task, rows[task], scales.get(task)) for task in shown
        ),
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
