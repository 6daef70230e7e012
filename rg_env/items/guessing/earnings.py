"""What cheap strategies earn at one task and level, measured in workers.

Items are made and their answers scored as in a run. Which strategy is the best is
found on one half of the items and what it earns on the other half, and the other way
round: the most of many chances is not taken for a strategy. A right answer of one half
is tried as a constant on the other, and on its own half but for one item that it is
the answer to.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from rg_env.answers.scoring_rules import ScoringRules
from rg_env.items import worker_jobs
from rg_env.items.group_scorer import GroupScorer, ScoringUnavailable, TaskHandle
from rg_env.items.guessing.strategies import PHRASES, answers
from rg_env.pool.pool_errors import DeadlineExceeded, JobFailed, WorkerDied
from rg_env.pool.worker_pool import WorkerPool
from rg_env.tasks.sampler import entry_seed
from rg_env.tasks.solutions import solution

MAKING_DEADLINE_S = 60.0
SCORING_DEADLINE_S = 60.0
"""Of all answers to an item at once: a machine that others use may take long."""
CONSTANTS_OF_A_HALF = 8
"""Right answers of each half that are tried on all items, the commonest first."""

ATTEMPTS_FOR_AN_ITEM = 3
"""Entries made at most for each item wanted, on average: some cannot be asked."""

MOST_LATE = 3
"""Items that are not ready at the deadline, after which no other one is begun."""

LONGEST_NAME = 50

ParamsOf = Callable[[int], Mapping[str, Any]]
"""From the seed of an entry to its dataset parameters."""


@dataclasses.dataclass(frozen=True)
class Item:
    """An entry that was made, with what made it.

    Attributes:
        seed: The entry's.
        params: Dataset parameters that differ from the defaults.
        entry: The library's.
        gold: A right answer, None where none is known.
    """

    seed: int
    params: Mapping[str, Any]
    entry: Mapping[str, Any]
    gold: str | None


@dataclasses.dataclass(frozen=True)
class Earned:
    """What strategies earned on the items of one task and level.

    Attributes:
        num_items: Items measured on.
        best: The strategies that were the best on a half, one or two.
        mean: What they earn on the other half, in [0, 1].
        error: Standard error of that mean.
        means: Every strategy that earned anything to its mean over all items.
    """

    num_items: int
    best: tuple[str, ...]
    mean: float
    error: float
    means: Mapping[str, float]


NOTHING = Earned(0, (), 0.0, 0.0, {})


async def make_items(
    pool: WorkerPool, task: str, params_of: ParamsOf, num_items: int, key: str
) -> list[Item]:
    """Make items that can be asked; fewer where too many cannot be made.

    Raises:
        PoolError: The pool is of no use.
    """
    items: list[Item] = []
    late = 0
    for number in range(ATTEMPTS_FOR_AN_ITEM * num_items):
        if len(items) == num_items:
            break
        seed = entry_seed("evaluation", key, number)
        params = dict(params_of(seed))
        try:
            entry = await pool.run(
                worker_jobs.make_entry,
                task,
                params,
                seed,
                deadline_s=MAKING_DEADLINE_S,
            )
        except JobFailed:
            continue
        except (DeadlineExceeded, WorkerDied):
            late += 1
            if late == MOST_LATE:
                break
            continue
        items.append(Item(seed, params, entry, solution(task, entry)))
    return items


def constant_name(answer: str) -> str:
    """Return the name of the strategy that always gives one answer."""
    return f"always {answer!r}"


def shown_name(name: str) -> str:
    """Return a strategy's name as tables show it; that of a long answer is cut."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."


def _constants(golds: Sequence[str | None]) -> dict[str, str]:
    """Return constants by name: the commonest right answers that are no phrase."""
    counted = Counter(gold for gold in golds if gold not in (None, *PHRASES))
    common = [gold for gold, _ in counted.most_common(CONSTANTS_OF_A_HALF)]
    return {constant_name(gold): gold for gold in common}


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0


@dataclasses.dataclass(frozen=True)
class Scored:
    """An item's right answer, and what each strategy earned; 0 if it is not named."""

    gold: str | None
    earned: Mapping[str, float]


def _fitted_mean(name: str, constant: str | None, half: Sequence[Scored]) -> float:
    """Return what a strategy earns on the half that it is chosen on.

    One item that has the constant as its right answer is left out: the constant was
    taken from it.
    """
    values = [scored.earned.get(name, 0.0) for scored in half]
    golds = [scored.gold for scored in half]
    if constant is not None and constant in golds:
        del values[golds.index(constant)]
    return _mean(values)


def summed_up(
    halves: tuple[Sequence[Scored], Sequence[Scored]],
    constants: tuple[Mapping[str, str], Mapping[str, str]],
    names: Collection[str],
) -> Earned:
    """Choose on each half and measure on the other.

    Args:
        halves: The scored items, each half at least one.
        constants: The constants of each half, by name.
        names: All other strategies. Of equals the first counts, constants before them.
    """
    measured: list[float] = []
    best = []
    for fit, own in enumerate(constants):
        fitted = {n: _fitted_mean(n, own.get(n), halves[fit]) for n in [*own, *names]}
        name = max(fitted, key=lambda one: fitted[one])
        best.append(name)
        measured += [scored.earned.get(name, 0.0) for scored in halves[1 - fit]]
    everything = [*halves[0], *halves[1]]
    every_constant = {**constants[0], **constants[1]}
    means = {
        name: _fitted_mean(name, every_constant.get(name), everything)
        for name in [*every_constant, *names]
    }
    spread = statistics.pstdev(measured) / math.sqrt(len(measured))
    return Earned(
        num_items=len(everything),
        best=tuple(dict.fromkeys(best)),
        mean=_mean(measured),
        error=spread,
        means={name: mean for name, mean in means.items() if mean > 0},
    )


async def earn(
    pool: WorkerPool,
    task: str,
    params_of: ParamsOf,
    num_items: int,
    key: str,
    only: Collection[str] | None = None,
) -> Earned:
    """Have every strategy answer the items of a task and level.

    Args:
        pool: Where items are made and answers scored.
        task: The task.
        params_of: Gives the parameters of an item.
        num_items: Items to make, at least 4.
        key: Names the stream of items.
        only: Strategies to try, None for all. Right answers to other items are tried
            anyway.

    Returns:
        What they earn; `NOTHING` where fewer than 4 items could be made.

    Raises:
        PoolError: The pool is of no use.
    """
    items = await make_items(pool, task, params_of, num_items, key)
    if len(items) < 4:
        return NOTHING
    phrases = {constant_name(text): text for text in PHRASES}
    constants = tuple(_constants([item.gold for item in items[i::2]]) for i in (0, 1))
    golds = {**constants[0], **constants[1]}
    fixed = phrases | golds
    scorer = GroupScorer(pool, SCORING_DEADLINE_S, ScoringRules())
    names: dict[str, None] = {}

    async def scored(place: int, item: Item) -> Scored:
        others = [other.gold for other in items[1 - place % 2 :: 2]]
        known = [gold for gold in others if gold is not None]
        question = str(item.entry["question"])
        said = fixed | answers(task, question, known, f"{key}/{place}", only)
        if only is not None:
            said = {name: said[name] for name in said if name in only or name in golds}
        names.update(dict.fromkeys(said))
        handle = TaskHandle(task, item.params, item.seed)
        try:
            scores = await scorer.score_group(handle, item.entry, list(said.values()))
        except ScoringUnavailable:
            return Scored(item.gold, {})
        values = (score.value for score in scores)
        return Scored(item.gold, dict(zip(said, values, strict=True)))

    found = await asyncio.gather(
        *(scored(place, item) for place, item in enumerate(items))
    )
    others = [name for name in names if name not in golds]
    return summed_up((found[0::2], found[1::2]), (constants[0], constants[1]), others)
