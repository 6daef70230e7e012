"""Items made in workers: the first of several attempts whose entry can be used.

An attempt is rejected if its entry cannot be solved, or if its question must not be
sampled. A draw whose attempts are all rejected, or whose entry cannot be made, gives no
item. It uses up its index, so later items do not change.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Collection, Iterable

from rg_env.library.datasets import MAKING_DEADLINE_S
from rg_env.library.task_check import is_unusable, why_no_entry
from rg_env.stream.item import NOT_MADE, Item
from rg_env.workers.pool_errors import JobError, PoolError
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class ItemMaker:
    """Makes items, and counts those that are not used.

    Attributes:
        deadline_s: CPU time of each attempt.
        left_out: Task whose items are not used, to the reason.
        avoided: Questions that no item may have; more may be added at any time.
        failures: Number of draws that gave no item, by task.
        events: Number of rejected attempts, and of draws that `avoided` left no item.

    Example:
        item = await ItemMaker().first_usable(pool, attempts)
    """

    deadline_s: float = MAKING_DEADLINE_S
    left_out: dict[str, str] = dataclasses.field(default_factory=dict)
    avoided: Collection[str] = ()
    failures: Counter[str] = dataclasses.field(default_factory=Counter)
    events: Counter[str] = dataclasses.field(default_factory=Counter)

    async def first_usable(self, pool: WorkerPool, attempts: Iterable[Item]) -> Item:
        """Return the first attempt that is not rejected, with its entry.

        Raises:
            PoolError: An entry cannot be made, or every attempt is rejected.
        """
        rejected: Exception = ValueError("there is no attempt")
        for attempt in attempts:
            try:
                item = await attempt.made(pool, self.deadline_s)
            except JobError as error:
                if not is_unusable(error):
                    raise
                rejected = error
                self.events.update(["items_unusable"])
                continue
            if item.question not in self.avoided:
                return item
            rejected = AvoidedQuestionError("its question belongs to the evaluation")
            self.events.update(["evaluations_avoided"])
        raise rejected

    async def make(
        self, pool: WorkerPool, task: str, attempts: Iterable[Item]
    ) -> Item | None:
        """Return the item of a draw, None if it has none; the reason is logged once.

        Raises:
            PoolError: The workers were lost, which says nothing of the item.
        """
        if task in self.left_out:
            return None
        try:
            return await self.first_usable(pool, attempts)
        except AvoidedQuestionError:
            self.events.update(["evaluations_skipped"])
        except NOT_MADE as error:
            if task not in self.failures:
                reason = why_no_entry(error)
                logger.warning("an item of task %s is left out: %s", task, reason)
            self.failures.update([task])  # at once, for threads
        return None


class AvoidedQuestionError(PoolError):
    """Every attempt at an item has a question that must not be sampled."""
