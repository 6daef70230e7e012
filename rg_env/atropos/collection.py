"""A group of one item, collected: asked for, scored, or why there is none.

Mends B13 of docs/host_defects.md: an exception becomes a dropped group without a
traceback or a pause.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from rg_env import patience
from rg_env.inference.inference import InferenceFailed
from rg_env.inference.outages import OutageWatch
from rg_env.items.group_scorer import ScoringUnavailable
from rg_env.reports.metrics import Metrics
from rg_env.rollouts.ledger import Ending, Fate

logger = logging.getLogger(__name__)

Rollouts = Sequence[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Collected:
    """What came of asking an item.

    Attributes:
        group: What the trainer gets; None where there is no group.
        endings: What became of the rollouts, empty while the group is on its way.
        again: The item, where it is to be asked again.
        cancelled: The cancel that ended it, to be raised when this is counted.
    """

    group: Any = None
    endings: Sequence[Ending] = ()
    again: Sequence[Any] = ()
    cancelled: asyncio.CancelledError | None = None


class GroupCollection:
    """Collects groups.

    Args:
        watch: Told of requests that failed; waits before an item is asked again.
        metrics: Counts errors and retries.
        again: Returns an item of a lost group, to be asked again, unless it was lost
            too often.
    """

    def __init__(
        self,
        watch: OutageWatch,
        metrics: Metrics,
        again: Callable[[Any], list[Any]],
    ) -> None:
        self._watch = watch
        self._metrics = metrics
        self._again = again

    async def collect(
        self,
        item: Any,
        size: int,
        ask: Callable[[Any], Awaitable[Rollouts]],
        score: Callable[[Rollouts], Awaitable[Any]],
    ) -> Collected:
        """Ask for a group of rollouts of an item, and score them.

        Args:
            item: What is asked.
            size: Rollouts of a group.
            ask: Returns the rollouts of an item.
            score: The hook; returns the group, None where it teaches nothing.
        """
        try:
            return await self._collected(item, size, ask, score)
        except asyncio.CancelledError as error:
            return Collected(endings=[Ending("cancelled", size)], cancelled=error)

    async def _collected(
        self,
        item: Any,
        size: int,
        ask: Callable[[Any], Awaitable[Rollouts]],
        score: Callable[[Rollouts], Awaitable[Any]],
    ) -> Collected:
        def ended(fate: Fate, again: Sequence[Any] = ()) -> Collected:
            return Collected(endings=[Ending(fate, size)], again=again)

        try:
            group = await self._scored(await ask(item), score)
        except InferenceFailed as error:
            await self._watch.note_failure(str(error))
            again = [item] if self._watch.is_down else self._again(item)
            return ended("unanswered", again)
        except ScoringUnavailable as error:
            logger.error("a group is lost: %s", error)
            return ended("unscored", self._again(item))
        except Exception as error:  # noqa: BLE001 - the framework would drop it and spin
            await self.note_error(error)
            return ended("failed", self._again(item))
        return ended("no_signal") if group is None else Collected(group)

    async def _scored(
        self, rollouts: Rollouts, score: Callable[[Rollouts], Awaitable[Any]]
    ) -> Any:
        """Score a group; a broken pool gets another try before that is an error."""
        for _ in range(patience.SCORING_TRIES - 1):
            try:
                return await score(rollouts)
            except ScoringUnavailable:
                self._metrics.events["scoring_retries"] += 1
        return await score(rollouts)

    async def note_error(self, error: Exception) -> None:
        """Log an error with its traceback, ever more seldom, and wait a moment."""
        self._metrics.events["errors"] += 1
        count = self._metrics.events["errors"]
        if count & (count - 1) == 0:  # the first, second, fourth, eighth, ...
            logger.error("a group failed (error %d)", count, exc_info=error)
        await asyncio.sleep(patience.ERROR_PAUSE_S)
