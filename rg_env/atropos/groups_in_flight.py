"""The groups in flight: started, taken to their ending, timed out, sampled again.

`GroupsInFlight.work_on` takes a group from its item to the ending of each of its
rollouts. It calls the framework's hooks, each once:

    collect_trajectories    ours calls `sample`: query, and have the hook `score` score
    postprocess_histories
    handle_send_to_api      ours calls `GroupDelivery.deliver`: checks, rows, the API

A hook gets the arguments that the framework gives it; `of` returns their group.

Mends B4 and B13 of docs/host_defects.md: the framework cancels groups in flight when
there is one too many, and drops a group that raises without a traceback or a pause.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import logging
import time
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

from atroposlib.envs.base import BaseEnv

from rg_env import patience
from rg_env.atropos.lifetime import cancel_and_wait, finish_or_cancel
from rg_env.atropos.rollout_requests import RolloutRequests
from rg_env.errors import RunError
from rg_env.inference.request_failures import RequestFailedError
from rg_env.inference.servers import Servers
from rg_env.items.group_scorer import ScoringUnavailableError
from rg_env.logs import is_worth_a_line
from rg_env.reports.metrics import Metrics
from rg_env.rollouts.ledger import Ending, Ledger

logger = logging.getLogger(__name__)

SUMMARY_EVERY_S = 30.0


class RowRefusedError(RunError):
    """The disk does not take the row of a group that nobody else has."""


def listed(data: Any) -> list[dict[str, Any]]:
    """Return one group's data, or that of several of which some may be None."""
    several = data if isinstance(data, list) else [data]
    return [one for one in several if one is not None]


def rollouts_in(data: Any) -> int:
    """Return the number of rollouts in the data of a group, of several, or of None."""
    return sum(len(one["tokens"]) for one in listed(data) if one)


@dataclasses.dataclass(eq=False)
class Group:
    """The rollouts of one item, from the item to their ending.

    Attributes:
        item: (messages, entry, dataset), or what a subclass samples.
        ledger: Counts how its rollouts end.
        tries: How often groups of this item were lost before.
        data: What the trainer gets, as the newest hook returned it: one group, a list
            of several, or None where there is none.
        in_flight: Number of its rollouts that were queried and have not ended.
        endings: How its rollouts ended.
        worker: The task that works on it in `serve`.
        start_time: When it was started, a framework's name; the system's clock jumps.
        began_s: The same of a clock that does not jump.
        collected_s: The same of the end of its collection.
    """

    item: Any
    ledger: Ledger
    tries: int = 0
    data: Any = None
    in_flight: int = 0
    endings: set[Ending] = dataclasses.field(default_factory=set)
    worker: asyncio.Task[Any] | None = None
    start_time: float = dataclasses.field(default_factory=time.time)
    began_s: float = dataclasses.field(default_factory=time.monotonic)
    collected_s: float = 0.0

    def __getitem__(self, name: str) -> Any:
        """Return item, worker or start_time, as the framework's `running_items` do."""
        return getattr(self, name)

    def query(self, rollouts: int) -> None:
        """Count rollouts that are being queried."""
        self.in_flight += rollouts
        self.ledger.query(rollouts)

    def keep(self, data: Any) -> None:
        """Take over what a hook returned; rollouts that it added count as queried."""
        self.data = data or None  # an empty list is no data either
        self.query(max(0, rollouts_in(data) - self.in_flight))

    def end(self, ending: Ending, rollouts: int | None = None) -> None:
        """Count the ending of some of its rollouts in flight, or of all of them.

        Every rollout ends here, and once: what has ended is no longer in flight.
        """
        ended = self.in_flight if rollouts is None else min(rollouts, self.in_flight)
        self.in_flight -= ended
        if ended:
            self.endings.add(ending)
            self.ledger.settle(ending, ended)

    def next_try(self) -> Group:
        """Return a new group of the same item, as often tried."""
        return Group(self.item, self.ledger, self.tries)


class GroupsInFlight:
    """The groups that were started and have not ended.

    Attributes:
        workers: The task of each group; a framework's name.
        running_items: Each id, to its group in `serve`; a framework's name.
        querying: Groups whose completions an inference server is generating.
        backlog: Lost groups whose items are sampled again before any new one; a
            subclass may add items of its own.
        freed: Set when a place among them becomes free.
    """

    def __init__(
        self,
        env: BaseEnv,
        ledger: Ledger,
        requests: RolloutRequests,
        servers: Servers,
        metrics: Metrics,
    ) -> None:
        self._env = env
        self._ledger = ledger
        self._requests = requests
        self._servers = servers
        self._metrics = metrics
        self._at_work: set[Group] = set()
        self.workers: set[asyncio.Task[Any]] = set()
        self.running_items: dict[str, Group] = {}
        self.querying: set[Group] = set()
        self.backlog: list[Any] = []
        self.freed = asyncio.Event()
        self._summary_s = time.monotonic()  # when the newest one was logged

    # -- a group, from its item to its ending ------------------------------------------

    async def work_on(self, group: Group, **how: Any) -> None:
        """Query, score and deliver a group; each of its rollouts has an ending then.

        What a hook drops is `discarded`. What it loses to an error is `failed`, and
        the item is sampled again.

        Args:
            group: A new one of an item; it gets its data.
            how: What the hook `handle_send_to_api` is told besides.

        Raises:
            RowRefusedError: The disk does not take its row.

        Source: atroposlib 0.4.0, BaseEnv.handle_env(); differs: that, errors have
        their traceback, and items are not written out for a log that is off.
        """
        env, otherwise = self._env, Ending.CANCELLED
        self._at_work.add(group)
        try:
            data, again = await env.collect_trajectories(group.item)
            self.backlog += [
                group.next_try() if item is group.item else item for item in again
            ]
            group.keep(data)
            if group.data is not None:
                group.keep(await env.postprocess_histories(group.data))
            group.collected_s = time.monotonic()
            if group.data is not None:
                await env.handle_send_to_api(group.data, group.item, **how)
            otherwise = Ending.DISCARDED
        except RowRefusedError:
            otherwise = Ending.FAILED
            raise
        except Exception as error:  # noqa: BLE001 - ours raise none, a subclass may
            otherwise = Ending.FAILED
            await self._note_error(error)
            # Else all of it was delivered before the error.
            if group.in_flight or group.data is None:
                self._retry(group)
        finally:
            self._at_work.discard(group)
            group.end(otherwise)

    def of(self, item: Any, data: Any = None) -> Group:
        """Return the group at work that the arguments of a hook belong to.

        If a hook is called from elsewhere, they are a group of their own.
        """
        for group in self._at_work:
            if group.item is item or (data is not None and group.data is data):
                return group
        return Group(item, self._ledger, data=data, in_flight=rollouts_in(data))

    async def sample(self, item: Any) -> tuple[Any, list[Any]]:
        """Do what the hook `collect_trajectories` does: query, and have them scored.

        Returns:
            The group's data, None where there is none; and the item, if it is to be
            sampled again.
        """
        group, began = self.of(item), time.monotonic()
        group.query(size := self._env.config.group_size)
        try:
            answered = functools.partial(self._free_place, group)
            rollouts = await self._requests.query(item, answered)
            data = await self._scored(rollouts)
        except RequestFailedError as error:
            group.end(Ending.UNANSWERED, size)
            await self._servers.note_failure(error.failure)
            # An outage is not the fault of the item, and costs it no try.
            is_retried = self._servers.is_down or self._may_retry(group)
        except ScoringUnavailableError as error:
            group.end(Ending.UNSCORED, size)
            logger.error("a group is lost: %s", error)
            is_retried = self._may_retry(group)
        except Exception as error:  # noqa: BLE001 - the framework would drop it and spin
            group.end(Ending.FAILED, size)
            await self._note_error(error)
            is_retried = self._may_retry(group)
        except asyncio.CancelledError:
            group.end(Ending.CANCELLED, size)
            raise
        else:
            if data is None:
                group.end(Ending.ZERO_VARIANCE, size)
            elif isinstance(data, dict):  # as ours is
                data["seconds"] = round(time.monotonic() - began, 3)
            return data, []
        return None, [item] if is_retried else []

    async def _scored(self, rollouts: list[dict[str, Any]]) -> Any:
        """Have the hook score; a broken pool gets another try before it is an error."""

        def note(error: Exception) -> None:
            self._metrics.events["scoring_retries"] += 1

        return await patience.tried_again(
            lambda: self._env.score(rollouts),
            lambda error: isinstance(error, ScoringUnavailableError),
            note,
            tries=patience.SCORING_TRIES,
        )

    # -- lost groups -------------------------------------------------------------------

    def _may_retry(self, group: Group) -> bool:
        """Count a lost try; return whether the item is to be sampled again.

        Its rollouts are counted as lost at every try.
        """
        group.tries += 1
        if group.tries < patience.ITEM_TRIES:
            return True
        logger.error("%r is given up after %d tries", group.item[-1], group.tries)
        return False

    def _retry(self, group: Group) -> None:
        if self._may_retry(group):
            self.backlog.append(group.next_try())

    async def _note_error(self, error: Exception) -> None:
        """Log an error and its traceback, at growing intervals, and wait a moment."""
        self._metrics.events["errors"] += 1
        count = self._metrics.events["errors"]
        if is_worth_a_line(count):
            logger.error("a group failed (error %d)", count, exc_info=error)
        await asyncio.sleep(patience.ERROR_PAUSE_S)

    # -- the groups of `serve` ---------------------------------------------------------

    async def next_group(self) -> Group | None:
        """Return a group of an item of the backlog, or else of a new one, if any."""
        if self.backlog:
            found = self.backlog.pop()
            return found if isinstance(found, Group) else Group(found, self._ledger)
        item = await self._env.get_next_item()
        return None if item is None else Group(item, self._ledger)

    def start(
        self, group: Group, handle_env: Callable[[str], Coroutine[Any, Any, Any]]
    ) -> None:
        """Start a group; the hook `handle_env` is given its id."""
        item_uuid = str(uuid.uuid4())
        worker = asyncio.get_running_loop().create_task(handle_env(item_uuid))
        group.worker = worker
        # The time that a lost group spent in the backlog does not count.
        group.start_time, group.began_s = time.time(), time.monotonic()
        self.running_items[item_uuid] = group
        self.querying.add(group)
        self.workers.add(worker)
        worker.add_done_callback(functools.partial(self._note_end, group))

    async def handle(self, item_uuid: str) -> Any:
        """Do what the hook `handle_env` does: work on a group that was started.

        If the group is cancelled before it is collected, its item is sampled again.

        Returns:
            The group's data, if any.
        """
        group = self.running_items[item_uuid]
        try:
            await self.work_on(group)
        except asyncio.CancelledError:
            # Unless its time was over, which took it out and counted a try.
            if item_uuid in self.running_items and group.data is None:
                self.backlog.append(group.next_try())
            raise
        finally:
            self.running_items.pop(item_uuid, None)
        self._note_duration(group)
        await self._env.cleanup()
        if time.monotonic() - self._summary_s >= SUMMARY_EVERY_S:
            self._summary_s = time.monotonic()
            await self.say_summary()
        return group.data

    def _note_end(self, group: Group, worker: asyncio.Task[Any]) -> None:
        self.workers.discard(worker)
        self._free_place(group)
        self.freed.set()
        if not worker.cancelled() and worker.exception() is not None:
            logger.error("a group was lost to an error", exc_info=worker.exception())

    def cancel_timed_out(self, timeout_s: float) -> None:
        """Cancel groups whose collection takes longer; 0 or less cancels none."""
        if timeout_s <= 0:
            return
        for item_uuid, group in list(self.running_items.items()):
            is_late = time.monotonic() - group.began_s > timeout_s
            if is_late and group.data is None and group.worker is not None:
                logger.warning(
                    "a group took longer than worker_timeout %g s and is cancelled: %r",
                    timeout_s,
                    group.item[-1],
                )
                group.worker.cancel()
                self.running_items.pop(item_uuid)
                self._retry(group)

    async def end(self) -> None:
        """End what is in flight after a short grace, and evaluations at once."""
        evaluations = cancel_and_wait([self._env.eval_runner, *self._env.eval_workers])
        await asyncio.gather(evaluations, finish_or_cancel(self.workers))

    async def say_summary(self) -> None:
        """Log how the rollouts have ended so far, if there are any."""
        if self._ledger.queried:
            logger.info("%s", self._metrics.summary())

    def _note_duration(self, group: Group) -> None:
        """Add to the framework's lists how long a collection took."""
        env, is_collected = self._env, group.data is not None
        took_s = (group.collected_s or time.monotonic()) - group.began_s
        env.task_duration.append(took_s)
        env.task_successful.append(int(is_collected))
        if is_collected:
            env.succeeded_task_duration.append(took_s)
            env.last_completed_item = group.item
        else:
            env.failed_task_duration.append(took_s)

    # -- places ------------------------------------------------------------------------

    def _free_place(self, group: Group) -> None:
        """Free the place of a group that has its replies, or has ended."""
        if group in self.querying:
            self.querying.remove(group)
            self.freed.set()

    async def wait_for_place(self, timeout_s: float) -> None:
        """Wait until a place becomes free, but not for long."""
        self.freed.clear()
        freed = asyncio.ensure_future(self.freed.wait())
        try:
            # Before Python 3.12, `wait_for` swallows a cancel, the end of the run, that
            # comes just when a worker is freed.
            await asyncio.wait({freed}, timeout=timeout_s)
        finally:
            freed.cancel()
