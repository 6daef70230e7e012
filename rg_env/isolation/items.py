"""Items made ahead in the worker processes and handed out in the stream's order.

What the items are depends on the draws alone; how far ahead they are made changes
only when they are ready. A draw whose entry cannot be made is counted, named once
and skipped: it uses up its index, so that the items after it stay what they are.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.answers.rules import ScoringRules
from rg_env.isolation import jobs
from rg_env.isolation.errors import IsolationError, PoolClosed
from rg_env.isolation.pool import WorkerPool
from rg_env.isolation.scorer import TaskHandle
from rg_env.tasks.sampler import Draw, Sampler
from rg_env.tasks.selection import TaskChoice

logger = logging.getLogger(__name__)

MAX_FAILURES_IN_A_ROW = 200
"""Draws that may fail one after the other before the source gives up."""


class NoItems(RuntimeError):
    """No item could be made for so long that going on makes no sense."""


@dataclasses.dataclass(frozen=True)
class MadeItem:
    """An entry and the handle that scores it."""

    entry: Mapping[str, Any]
    handle: TaskHandle


class ItemSource:
    """The stream of items of one instance.

    Args:
        pool: Where entries are made.
        sampler: The stream of draws; owned by the source from here on.
        choices: What the draws fall on, shape (C,).
        lookahead: Entries being made ahead, at least 1.
        item_deadline_s: Seconds that making one entry may take.
        scoring_deadline_s: Handed on to the handles.
        rules: Handed on to the handles.

    Attributes:
        failures: Number of draws that gave no entry, by task.
        left_out: Task to the reason why its draws are skipped unasked.
    """

    def __init__(
        self,
        pool: WorkerPool,
        sampler: Sampler,
        choices: Sequence[TaskChoice],
        *,
        lookahead: int,
        item_deadline_s: float,
        scoring_deadline_s: float,
        rules: ScoringRules,
    ) -> None:
        self._pool = pool
        self._sampler = sampler
        self._choices = choices
        self._lookahead = lookahead
        self._item_deadline_s = item_deadline_s
        self._scoring_deadline_s = scoring_deadline_s
        self._rules = rules
        self._ahead: deque[tuple[Draw, asyncio.Task[dict[str, Any]] | None]] = deque()
        self._delivered = sampler.position
        self.failures: Counter[str] = Counter()
        self.left_out: dict[str, str] = {}

    def leave_out(self, reasons: Mapping[str, str]) -> None:
        """Skip the draws of tasks from here on; each is named with its reason."""
        for task, reason in reasons.items():
            logger.warning("task %s is left out: %s", task, reason)
        self.left_out.update(reasons)

    @property
    def position(self) -> int:
        """Draws that were handed out or skipped; where a resumed run continues."""
        return self._delivered

    @position.setter
    def position(self, position: int) -> None:
        self.cancel_ahead()
        self._sampler.load_state_dict({"position": position})
        self._delivered = position

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs to continue with the next item."""
        return {"position": self._delivered}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where `state` was taken.

        Raises:
            ValueError: The position is missing or negative.
        """
        Sampler([1.0], 0).load_state_dict(state)
        self.position = state["position"]

    def cancel_ahead(self) -> None:
        """Give up the entries being made ahead; they are drawn again when needed."""
        for _, task in self._ahead:
            if task is not None:
                task.cancel()
        self._ahead.clear()
        self._sampler.position = self._delivered

    def _handle(self, draw: Draw) -> TaskHandle:
        choice = self._choices[draw.choice]
        return TaskHandle(
            task=choice.task,
            params=choice.params,
            seed=draw.seed,
            index=draw.index,
            deadline_s=self._scoring_deadline_s,
            rules=self._rules,
        )

    def _start_ahead(self) -> None:
        while len(self._ahead) < self._lookahead:
            draw = self._sampler.next_draw()
            choice = self._choices[draw.choice]
            making = None
            if choice.task not in self.left_out:
                making = asyncio.create_task(
                    self._pool.run(
                        jobs.make_entry,
                        choice.task,
                        dict(choice.params),
                        draw.seed,
                        deadline_s=self._item_deadline_s,
                    )
                )
            self._ahead.append((draw, making))

    async def next_item(self) -> MadeItem:
        """Return the next item of the stream.

        Raises:
            NoItems: `MAX_FAILURES_IN_A_ROW` draws gave no entry.
            PoolClosed: The pool was closed meanwhile.
        """
        for _ in range(MAX_FAILURES_IN_A_ROW):
            self._start_ahead()
            draw, making = self._ahead[0]
            entry = None if making is None else await self._finished(draw, making)
            if self._ahead and self._ahead[0][0] is draw:
                self._ahead.popleft()
                self._delivered += 1
            if entry is not None:
                return MadeItem(entry, self._handle(draw))
        raise NoItems(
            f"{MAX_FAILURES_IN_A_ROW} items in a row could not be made; the log names"
            " each task and the reason"
        )

    async def _finished(
        self, draw: Draw, making: asyncio.Task[dict[str, Any]]
    ) -> dict[str, Any] | None:
        """Wait for an entry; a cancelled caller leaves it in its place."""
        task = self._choices[draw.choice].task
        try:
            return await asyncio.shield(making)
        except PoolClosed:
            raise
        except IsolationError as error:
            self.failures[task] += 1
            if self.failures[task] == 1:
                logger.warning("no item for task %s (%s): %s", task, draw, error)
            return None
