"""What strategies score on items of one task and level, made and scored in workers.

Items are made and their answers scored as in a run. Callers choose the strategies
and the number of items.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from rg_env.library import worker_jobs
from rg_env.reward.score import ScoringRules
from rg_env.stream.group_scorer import GroupScorer, ScoringUnavailableError
from rg_env.stream.item import Item
from rg_env.stream.sampler import entry_seed
from rg_env.workers.pool_errors import DeadlineExceededError, JobError, WorkerDiedError
from rg_env.workers.worker_pool import WorkerPool
from tools.trivial_baselines.forest import Forest
from tools.trivial_baselines.learned_guesses import list_sums, sums
from tools.trivial_baselines.strategies import PHRASES, SOLVING, answers

MAKING_DEADLINE_S = 60.0
SCORING_DEADLINE_S = 60.0
"""Of all answers to an item at once: a machine that others use may take long."""

MOST_CONSTANTS = 12
"""Right answers to other items that are tried on all items, the commonest first."""

ATTEMPTS_FOR_AN_ITEM = 3
"""Entries made at most for each item wanted, on average: some are unusable."""

MOST_LATE = 3
"""Items that are not ready at the deadline, after which no other one is begun."""

CHOSEN = "strategy that features of the question choose"

AnswersOf = Callable[[Item], Mapping[str, str]]
"""From an item to the answers of strategies, by name."""


@dataclasses.dataclass(frozen=True)
class ExpectedScore:
    """The mean score of a strategy and its standard error.

    An item that it says nothing of counts as 0.
    """

    mean: float
    error: float
    items: int


async def make_items(
    pool: WorkerPool, task: str, params: Mapping[str, Any], num_items: int, key: str
) -> list[Item]:
    """Make items that are usable; fewer where too many cannot be made."""
    items: list[Item] = []
    late = 0
    for number in range(ATTEMPTS_FOR_AN_ITEM * num_items):
        if len(items) == num_items:
            break
        seed = entry_seed("evaluation", key, number)
        call = (worker_jobs.make_entry, task, dict(params), seed)
        try:
            entry = await pool.run(*call, deadline_s=MAKING_DEADLINE_S)
        except JobError:
            continue
        except (DeadlineExceededError, WorkerDiedError):
            late += 1
            if late == MOST_LATE:
                break
            continue
        items.append(Item(task, params, seed, _entry=entry))
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
    common = [gold for gold, _ in golds.most_common(MOST_CONSTANTS)]
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
) -> list[tuple[Item, dict[str, float]]]:
    """Have strategies answer items; one that workers gave no score has no part."""
    scorer = GroupScorer(pool, SCORING_DEADLINE_S, ScoringRules())

    async def of(item: Item) -> dict[str, float] | None:
        said = answers_of(item)
        try:
            scores = await scorer.score_group(item, item.entry, [*said.values()])
        except ScoringUnavailableError:
            return None
        return dict(zip(said, (score.value for score in scores), strict=True))

    scored = await asyncio.gather(*map(of, items))
    pairs = zip(items, scored, strict=True)
    return [(item, scores) for item, scores in pairs if scores is not None]


async def expected_scores(
    pool: WorkerPool, items: Sequence[Item], answers_of: AnswersOf
) -> dict[str, ExpectedScore]:
    """Have strategies answer items.

    Returns:
        Every strategy that said anything to what it scores, the best first, and of
        equals those that stand first. An item that workers gave no score has no part.
    """
    found = [scores for _, scores in await item_scores(pool, items, answers_of)]
    names = dict.fromkeys(name for scores in found for name in scores)
    by_name = {}
    for name in names:
        values = [scores.get(name, 0.0) for scores in found]
        error = statistics.pstdev(values) / math.sqrt(len(values))
        by_name[name] = ExpectedScore(statistics.fmean(values), error, len(values))
    return dict(sorted(by_name.items(), key=lambda one: -one[1].mean))
