"""Writes the scores of trivial baselines: `python -m tools.make_baselines [TASK ...]`.

At the library's defaults and at every step of the shipped scale, every trivial baseline
answers a few items. Where one of them scores something, those that scored most answer
others, which say which is the best; what that one scores on yet others is the baseline,
so that no luck is taken for it. It takes hours of two cores; given names of tasks,
only their rows are made again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from rg_env.library import worker_jobs
from rg_env.library.installed_library import DEADLINE_S, read_library
from rg_env.library.scales import Scale
from rg_env.library.scales import load_shipped as load_scales
from rg_env.library.trivial_baselines import BASELINES
from rg_env.reward.score import ScoringRules
from rg_env.stream.group_scorer import GroupScorer
from rg_env.stream.item import Item
from rg_env.stream.seeds import entry_seed
from rg_env.workers.call import DeadlineExceededError, JobError, WorkerDiedError
from rg_env.workers.worker_pool import WorkerPool
from tools.tables import table_text
from tools.trivial_baselines.forest import Forest
from tools.trivial_baselines.learned_guesses import list_sums, sums
from tools.trivial_baselines.strategies import PHRASES, SOLVING, answers

WORKERS = 2
MEMORY_LIMIT_BYTES = 3 * 2**30

SCREENED_ON = 32
"""Items that every strategy answers."""

LEARNED_ON = 400
"""Items that the choice of a strategy by features of the question is learned on."""

CHOSEN_ON = 200
"""Items that say which of the finalists is the best."""

MEASURED_ON = 600
"""Items that say what it scores; a standard error of at most 0.02."""

MAKING_MS = 10_000.0
MIN_SHARE = 0.1
"""Where the items that are measured on take longer to make, as the scales say, there
are fewer in each stage, down to this share."""

FINALISTS = 12

WORTH_MEASURING = 0.06
"""What a strategy has to score on the items before, to answer more."""

WORTH_SHIPPING = 0.1
"""A task and level at which the best trivial baseline scores less has none: it is
about what measuring errs by, or what the library gives for any readable answer."""

HIGHEST = 0.95
"""Where a trivial baseline scores more, this is it: the level is of no use, but what
divides by its rest stays a number."""

CHECK_ITEMS = 4
"""Items at the defaults on which the sum of what all strategies score is kept: where it
is another one today, the baselines are of other scorers."""

MAKING_DEADLINE_S = 60.0
SCORING_DEADLINE_S = 60.0
"""Of all answers to an item at once: a machine that others use may take long."""

MAX_CONSTANTS = 12
"""Right answers to other items that are tried on all items, the commonest first."""

ATTEMPTS_FOR_AN_ITEM = 3
"""Entries made at most for each item wanted, on average: some are unusable."""

MAX_LATE = 3
"""Items that are not ready at the deadline, after which no other one is begun."""

CHOSEN = "strategy that features of the question choose"

AnswersOf = Callable[[Item], Mapping[str, str]]
"""From an item to the answers of strategies, by name."""

Params = Mapping[str, Any]
Baseline = Mapping[str, Any]
"""What the best trivial baseline scores at one task and level, with standard error."""
Cell = tuple[str, Params, float]
"""A task, the parameters of its defaults or of a step, and the milliseconds that an
item takes, 0 where that is not known."""


def cells_of(task: str, scale: Scale | None) -> list[Cell]:
    """Return the defaults and each step, each once."""
    steps = () if scale is None or scale.is_constant else scale.steps
    found: list[Cell] = [(task, step.params, step.item_ms or 0.0) for step in steps]
    if all(step.params for step in steps):
        found.insert(0, (task, {}, 0.0))
    return found


def _finalists(found: Mapping[str, ExpectedScore]) -> list[str]:
    return [name for name, one in found.items() if one.mean >= WORTH_MEASURING]


class ExpectedScore(NamedTuple):
    """The mean score of a strategy and its standard error.

    An item that it says nothing of counts as 0.
    """

    mean: float
    error: float
    items: int


async def make_items(
    pool: WorkerPool, cell: Cell, num_items: int, stage: str
) -> list[Item]:
    """Make items that are usable; fewer where too many cannot be made."""
    task, params, _ = cell
    key = f"{stage}/{task}/{sorted(params.items())!r}"
    items: list[Item] = []
    late = 0
    for number in range(ATTEMPTS_FOR_AN_ITEM * num_items):
        if len(items) == num_items or late == MAX_LATE:
            break
        seed = entry_seed("evaluation", key, number)
        job = worker_jobs.make_entry
        try:
            entry = await pool.run(
                job, task, dict(params), seed, deadline_s=MAKING_DEADLINE_S
            )
            items.append(Item(task, params, seed, _entry=entry))
        except (DeadlineExceededError, WorkerDiedError):
            late += 1
        except JobError:
            continue
    return items


def guesses(
    known: Sequence[Item],
    only: Collection[str] | None = None,
    forest: Forest | None = None,
) -> AnswersOf:
    """Return what strategies answer that have seen some items and their right answers.

    Args:
        known: The items that they have seen; of an item among them they have not seen
            its own right answer, but that it is tried as a constant.
        only: Names of the strategies that answer; None for all.
        forest: Chooses among all strategies, as another one.
    """
    seen = [(item, item.gold) for item in known if item.gold is not None]
    golds = Counter(gold for _, gold in seen)
    common = [gold for gold, _ in golds.most_common(MAX_CONSTANTS)]
    constants = {f"always {text!r}": text for text in (*PHRASES, *common)}

    def answers_of(item: Item) -> Mapping[str, str]:
        others = [(one.question, gold) for one, gold in seen if one is not item]
        said = answers(item.task, item.question, others, str(item.seed))
        said = {**constants, **said}
        if seen and item.task not in SOLVING:
            said |= {**sums(item.question), **list_sums(item.question)}
        chosen = forest.choose(item.question, said) if forest else None
        if chosen is not None:
            said[CHOSEN] = chosen
        return {n: text for n, text in said.items() if only is None or n in only}

    return answers_of


async def item_scores(
    pool: WorkerPool, items: Sequence[Item], answers_of: AnswersOf
) -> list[dict[str, float]]:
    """Have strategies answer items; return what each scores on each item."""
    scorer = GroupScorer(pool, SCORING_DEADLINE_S, ScoringRules())

    async def of(item: Item) -> dict[str, float]:
        said = answers_of(item)
        scores = await scorer.score_group(item, item.entry, [*said.values()])
        return dict(zip(said, (score.value for score in scores), strict=True))

    return await asyncio.gather(*map(of, items))


async def expected_scores(
    pool: WorkerPool, items: Sequence[Item], answers_of: AnswersOf
) -> dict[str, ExpectedScore]:
    """Have strategies answer items.

    Returns:
        Every strategy that said anything to what it scores, the best first, and of
        equals those that stand first.
    """
    found = await item_scores(pool, items, answers_of)
    names = dict.fromkeys(name for scores in found for name in scores)
    by_name = {}
    for name in names:
        values = [scores.get(name, 0.0) for scores in found]
        error = statistics.pstdev(values) / math.sqrt(len(values))
        by_name[name] = ExpectedScore(statistics.fmean(values), error, len(values))
    return dict(sorted(by_name.items(), key=lambda one: -one[1].mean))


async def measure(pool: WorkerPool, cell: Cell) -> Baseline | None:
    """Return the baseline of a task at one step, None where it is worth none."""
    _, params, item_ms = cell
    share = MAKING_MS / MEASURED_ON / max(1.0, item_ms)
    share = max(MIN_SHARE, min(1.0, share))
    known = await make_items(pool, cell, int(SCREENED_ON * max(0.5, share)), "known")
    kept = _finalists(await expected_scores(pool, known, guesses(known)))
    if not kept:
        return None
    learning = await make_items(pool, cell, int(LEARNED_ON * share), "learned")
    scored = await item_scores(pool, learning, guesses(known))
    questions = (item.question for item in learning)
    forest = Forest([*zip(questions, scored, strict=True)])
    chosen_on = int(CHOSEN_ON * share)
    items = await make_items(
        pool, cell, chosen_on + int(MEASURED_ON * share), "measured"
    )
    choosing, rest = items[:chosen_on], items[chosen_on:]
    known += choosing
    finalists = [CHOSEN, *kept[:FINALISTS]]
    best = _finalists(
        await expected_scores(pool, choosing, guesses(known, finalists, forest))
    )
    found = await expected_scores(pool, rest, guesses(known, best[:1], forest))
    strategy, one = next(iter(found.items()), ("", None))
    if one is None or one.mean < WORTH_SHIPPING:
        return None
    return {
        "params": params,
        "value": round(min(one.mean, HIGHEST), 3),
        "error": round(one.error, 3),
        "items": one.items,
        "strategy": strategy if len(strategy) <= 50 else f"{strategy[:50]}...",
    }


async def check_score(pool: WorkerPool, task: str) -> float:
    """Return the sum of what strategies score on items at the defaults."""
    items = await make_items(pool, (task, {}, 0.0), CHECK_ITEMS, "trial")
    found = await expected_scores(pool, items, guesses([]))
    return round(math.fsum(one.mean * one.items for one in found.values()), 4)


async def make(names: Sequence[str]) -> None:
    pool = WorkerPool(
        WORKERS, memory_limit_bytes=MEMORY_LIMIT_BYTES, preload=worker_jobs.PRELOAD
    )
    try:
        library = await read_library(pool)
        tasks = [task for task in library.tasks if not names or task in names]
        digests = await pool.run(
            worker_jobs.curriculum_digests, tasks, deadline_s=DEADLINE_S
        )
        scales = load_scales().scales
        for task in tasks:
            cells = cells_of(task, scales.get(task))
            found = await asyncio.gather(*(measure(pool, cell) for cell in cells))
            baselines = [one for one in found if one is not None]
            score = await check_score(pool, task)
            print(task, *baselines, sep="\n  ", file=sys.stderr)
            rows = json.loads(BASELINES.read_text(encoding="utf-8"))["tasks"]
            rows[task] = {
                "digest": digests[task],  # of the library's sources
                "check_score": score,
                "baselines": baselines,
            }
            BASELINES.write_text(table_text(library.version, rows), encoding="utf-8")
    finally:
        pool.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    asyncio.run(make(parser.parse_args().tasks))
