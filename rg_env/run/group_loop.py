"""The loop over groups, which knows no framework and is given its parts.

    run = Run(items.next, model.complete, reward.score, [writer.take])
    while (group := await run.next_group()) is not None:
        await run.work_on(group)

A run takes an item from its source, has the model complete it and the reward score the
completions, and hands the group to each of its sinks in turn. A part that loses a group
raises `Lost`, and one that drops it raises `Refused`; both have the ending with which
its rollouts are counted. docs/architecture.md has the parts of each command.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from rg_env.errors import RunError
from rg_env.logs import should_log
from rg_env.run.group import Group
from rg_env.run.ledger import Ending, Ledger
from rg_env.shutdown import IN_FLIGHT_GRACE_S, cancel_and_wait
from rg_env.stream.group_scorer import ScoringUnavailableError

logger = logging.getLogger(__name__)

# Lost groups of one item before the item is given up.
ITEM_TRIES = 5

# Pause after an unexpected error, so that one that repeats does not spin.
ERROR_PAUSE_S = 1.0


class Lost(Exception):  # noqa: N818 - it is not an error of the run
    """A group ends before its sinks have taken it, and its item is sampled again.

    Args:
        ending: How its rollouts in flight are counted.
        reason: A sentence, or "" if the log has it already.
        is_items_fault: Whether the item may be at fault. If not, as in an outage, this
            costs the item none of its tries.
    """

    def __init__(
        self, ending: Ending, reason: str = "", *, is_items_fault: bool = True
    ) -> None:
        super().__init__(reason)
        self.ending = ending
        self.is_items_fault = is_items_fault


class Refused(Lost):
    """A check or a sink drops a group; its item is not sampled again."""


class RunStoppedError(RunError):
    """A part cannot go on, so the run ends."""


Part = Callable[[Group], Awaitable[object]]
"""Works on a group: a model, a reward or a sink."""


@dataclasses.dataclass
class Run:
    """A source, a model, a reward and sinks, and the groups that they work on.

    Attributes:
        next_item: Returns the next item, or a group of it; None after the last one.
        complete: Counts the queried rollouts of a group, and sets its completions.
        score: Sets the rollouts of a group; None if `complete` does.
        sinks: Take each scored group, in this order.
        ledger: Counts the rollouts of all groups.
        max_tries: How many groups of one item may be lost before the item is given up.
        fatal: Errors of its parts that end the run.
        on_given_up: Called with the last group of such an item, and its error.
        score_within_s: A group without scores after this many seconds is lost.
        backlog: Items, and groups of items, that are sampled before any new one.
        events: Counts unexpected `errors`, each of which lost a group.
    """

    next_item: Callable[[], Awaitable[Any]]
    complete: Part
    score: Part | None
    sinks: Sequence[Part]
    ledger: Ledger = dataclasses.field(default_factory=Ledger)
    max_tries: int = ITEM_TRIES
    fatal: tuple[type[Exception], ...] = (RunStoppedError,)
    on_given_up: Callable[[Group, Exception], Awaitable[None]] | None = None
    score_within_s: float | None = None
    backlog: list[Any] = dataclasses.field(default_factory=list)
    events: Counter[str] = dataclasses.field(default_factory=Counter)

    async def next_group(self) -> Group | None:
        """Return a group of the next item, first from the backlog; None at the end."""
        item = self.backlog.pop() if self.backlog else await self.next_item()
        if item is None or isinstance(item, Group):
            return item
        return Group(item, self.ledger)

    async def work_on(self, group: Group) -> None:
        """Complete, score and deliver a group; then all of its rollouts have ended.

        Raises:
            Exception: One of the `fatal` ones.
        """
        ending = Ending.CANCELLED  # of the rollouts that no part ends
        try:
            await asyncio.wait_for(self._complete_and_score(group), self.score_within_s)
            for sink in self.sinks:
                await sink(group)
            ending = Ending.DISCARDED
        except Lost as error:
            ending = error.ending
            if not isinstance(error, Refused):
                await self._sample_again(group, error)
        except ScoringUnavailableError as error:
            ending = Ending.UNSCORED
            if self.on_given_up is None:
                logger.error("a group is lost: %s", error)
            await self._sample_again(group, error)
        except asyncio.CancelledError:
            if not group.is_delivered:
                self.backlog.append(group.next_try())
            raise
        except self.fatal:
            ending = Ending.FAILED
            raise
        except Exception as error:  # noqa: BLE001 - it is logged with its traceback
            ending = Ending.FAILED
            await self._handle_error(group, error)
        finally:
            group.end(ending)

    async def _complete_and_score(self, group: Group) -> None:
        await self.complete(group)
        if self.score is not None:
            await self.score(group)

    def use_try(self, group: Group, error: Exception) -> bool:
        """Use up a try of a group's item; return whether another try is left.

        An error that is not the item's fault costs no try.
        """
        if getattr(error, "is_items_fault", True):
            group.tries += 1
        return group.tries < self.max_tries

    async def _sample_again(self, group: Group, error: Exception) -> None:
        """Put the item of a lost group into the backlog, or give it up."""
        if self.use_try(group, error):
            self.backlog.append(group.next_try())
        elif self.on_given_up is not None:
            await self.on_given_up(group, error)
        else:
            logger.error("%r is given up after %d tries", group.item[-1], group.tries)

    async def _handle_error(self, group: Group, error: Exception) -> None:
        """Log an unexpected error, pause, and have the item sampled again."""
        self.events["errors"] += 1
        count = self.events["errors"]
        if should_log(count):
            logger.error("a group failed (error %d)", count, exc_info=error)
        try:
            await asyncio.sleep(ERROR_PAUSE_S)
        finally:  # also if the work is cancelled during the pause
            if not group.is_delivered:
                await self._sample_again(group, error)


Work = Callable[[Group], Coroutine[Any, Any, None]]
"""Works on a group of a run from its beginning to its end."""


class Window:
    """The in-flight window: the groups that are worked on at once.

    Attributes:
        workers: The work in flight, a task for each group.
        freed: Set when work has ended, so that more may begin.
    """

    def __init__(self) -> None:
        self.workers: set[asyncio.Task[Any]] = set()
        self.freed = asyncio.Event()
        self._error: BaseException | None = None

    async def fill(
        self, run: Run, work_on: Work, may_begin: Callable[[], bool]
    ) -> None:
        """Begin work on groups of a run while `may_begin()` and there are groups."""
        while may_begin() and (group := await run.next_group()) is not None:
            worker = asyncio.get_running_loop().create_task(work_on(group))
            self.workers.add(worker)
            worker.add_done_callback(self._note_end)
            # Lets it begin, and keeps other tasks from waiting for a burst of groups.
            await asyncio.sleep(0)

    def _note_end(self, worker: asyncio.Task[Any]) -> None:
        self.workers.discard(worker)
        self.freed.set()
        if not worker.cancelled():
            self._error = self._error or worker.exception()

    async def run_all(self, run: Run, max_groups: int) -> None:
        """Work on all groups of a run, at most `max_groups` at once."""
        await self.run(run, run.work_on, lambda: len(self.workers) < max_groups)

    async def run(self, run: Run, work_on: Work, may_begin: Callable[[], bool]) -> None:
        """Work until no more groups may begin and all work has ended.

        If the work on a group raises an error, the others are cancelled after a grace
        period, and the error is raised.
        """
        try:
            while True:
                self.freed.clear()
                await self.fill(run, work_on, may_begin)
                if self._error is not None:
                    raise self._error
                if not self.workers:
                    return
                await self.freed.wait()
        finally:
            await cancel_and_wait(self.workers, IN_FLIGHT_GRACE_S)
