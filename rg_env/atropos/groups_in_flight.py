"""The groups in flight: started, collected, delivered, timed out, sampled again.

Mends B4 and B13 of docs/host_defects.md: the framework cancels groups in flight when
there is one too many, and drops a group that raises without a traceback or a pause. The
ending of every rollout is counted, also if its group was cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from atroposlib.envs.base import BaseEnv

from rg_env import patience
from rg_env.atropos.group import Group, rollouts_in
from rg_env.atropos.lifetime import cancel_and_wait, finish_or_cancel
from rg_env.atropos.rollout_requests import RolloutRequests
from rg_env.inference.request_failures import RequestFailedError
from rg_env.inference.servers import Servers
from rg_env.items.group_scorer import ScoringUnavailableError
from rg_env.logs import is_worth_a_line
from rg_env.reports.metrics import Metrics
from rg_env.rollouts.ledger import Ending, Ledger

logger = logging.getLogger(__name__)

SUMMARY_EVERY_S = 30.0


class GroupsInFlight:
    """The groups that were started and have not ended.

    Attributes:
        workers: The task of each group; a framework's name.
        running_items: Each id, to the group that is being collected; a framework's
            name.
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
        self.workers: set[asyncio.Task[Any]] = set()
        self.running_items: dict[str, Group] = {}
        self.querying: set[Group] = set()
        self.backlog: list[Any] = []
        self.freed = asyncio.Event()
        self._summary_s = time.monotonic()  # when the newest one was logged

    # -- a group, from its item to its ending ------------------------------------------

    async def work_on(self, item_uuid: str) -> Any:
        """Collect and deliver a group that was started; return its data, if any.

        If the task is cancelled before the group is complete, the item is sampled
        again, whatever the reason; the same holds if an error occurs.

        Source: atroposlib 0.4.0, BaseEnv.handle_env(); differs: that, errors have
        their traceback, and items are not written out for a log that is off.
        """
        group = self.running_items[item_uuid]
        try:
            is_collected = await self.collect(group)
        except asyncio.CancelledError:
            if self.running_items.pop(item_uuid, None) is not None:
                self.backlog.append(group.next_try())
            raise
        self.running_items.pop(item_uuid, None)
        self._note_duration(group, is_collected)
        if is_collected:
            try:
                await self.deliver(group)
            except Exception as error:  # noqa: BLE001 - of a subclass or W&B
                await self._note_error(error)
        await self._env.cleanup()
        if time.monotonic() - self._summary_s >= SUMMARY_EVERY_S:
            self._summary_s = time.monotonic()
            await self.say_summary()
        return group.data

    async def collect(self, group: Group) -> bool:
        """Run the hooks that query, score and change a group; return if it has data."""
        env = self._env
        with group.in_hooks():
            try:
                data, again = await env.collect_trajectories(group.item)
                self.backlog += [
                    group.next_try() if item is group.item else item for item in again
                ]
                group.keep(data or None)  # an empty list is no data either
                if group.data is not None:
                    with self._counting_lost(group):
                        data = await env.postprocess_histories(group.data)
                    self._end(group, Ending.DISCARDED, keeping=rollouts_in(data))
                    group.keep(data)
            except Exception as error:  # noqa: BLE001 - ours raise none, a subclass may
                group.keep(None)
                await self._note_error(error)
                self._retry(group)
        return group.data is not None

    async def deliver(self, group: Group, **how: Any) -> None:
        """Hand a group to the hook that delivers it.

        An item whose group the hook loses to an error is sampled again.
        """
        with group.in_hooks(), self._counting_lost(group, retries=True):
            await self._env.handle_send_to_api(group.data, group.item, **how)
        self._end(group, Ending.DISCARDED)

    @contextlib.contextmanager
    def _counting_lost(self, group: Group, *, retries: bool = False) -> Iterator[None]:
        """Count the rollouts that end because a hook raises."""
        try:
            yield
        except BaseException as error:
            is_cancel = isinstance(error, asyncio.CancelledError)
            if retries and group.in_flight > 0 and not is_cancel:
                self._retry(group)
            self._end(group, Ending.CANCELLED if is_cancel else Ending.FAILED)
            raise

    def _end(self, group: Group, ending: Ending, *, keeping: int = 0) -> None:
        """Count the ending of a group's rollouts in flight, except for some of them."""
        self._ledger.settle(ending, max(0, group.in_flight - keeping))
        group.in_flight = min(group.in_flight, keeping)

    # -- what the hook `collect_trajectories` does -------------------------------------

    async def sample(self, item: Any) -> tuple[Any, list[Any]]:
        """Query a group of rollouts of an item, and have the hook `score` score them.

        Returns:
            The group's data, None where there is none; and the item, if it is to be
            sampled again.
        """
        group, size = Group.of(item), self._env.config.group_size
        self._ledger.query(size)
        data, is_retried, began = None, False, time.monotonic()
        ending = Ending.CANCELLED
        try:
            answered = functools.partial(self._free_place, group)
            await self._requests.query(group, answered)
            data = await self._scored(group)
            ending = Ending.ZERO_VARIANCE
            if isinstance(data, dict):  # as ours is
                data["seconds"] = round(time.monotonic() - began, 3)
        except RequestFailedError as error:
            await self._servers.note_failure(error.failure)
            is_retried = self._servers.is_down or self._may_retry(group)
            ending = Ending.UNANSWERED
        except ScoringUnavailableError as error:
            logger.error("a group is lost: %s", error)
            is_retried, ending = self._may_retry(group), Ending.UNSCORED
        except Exception as error:  # noqa: BLE001 - the framework would drop it and spin
            await self._note_error(error)
            is_retried, ending = self._may_retry(group), Ending.FAILED
        finally:
            if data is None:
                self._ledger.settle(ending, size)
        return data, [item] if is_retried else []

    async def _scored(self, group: Group) -> Any:
        """Have the hook score; a broken pool gets another try before it is an error."""

        def note(error: Exception) -> None:
            self._metrics.events["scoring_retries"] += 1

        return await patience.tried_again(
            lambda: self._env.score(group.rollouts),
            lambda error: isinstance(error, ScoringUnavailableError),
            note,
            tries=patience.SCORING_TRIES,
        )

    # -- lost groups -------------------------------------------------------------------

    def _may_retry(self, group: Group) -> bool:
        """Count a lost try; say whether the item is to be sampled again.

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

    # -- beginning and ending ----------------------------------------------------------

    async def next_group(self) -> Group | None:
        """Return a group of an item of the backlog, or else of a new one, if any."""
        if self.backlog:
            found = self.backlog.pop()
            return found if isinstance(found, Group) else Group(found)
        item = await self._env.get_next_item()
        return None if item is None else Group(item)

    def start(
        self, group: Group, handle_env: Callable[[str], Coroutine[Any, Any, Any]]
    ) -> None:
        """Start a group; the hook `handle_env` is given its id."""
        item_uuid = str(uuid.uuid4())
        worker = asyncio.get_running_loop().create_task(handle_env(item_uuid))
        group.worker = worker
        group.start_time, group.began_s = time.time(), time.monotonic()
        self.running_items[item_uuid] = group
        self.querying.add(group)
        self.workers.add(worker)
        worker.add_done_callback(functools.partial(self._note_end, group))

    def _note_end(self, group: Group, worker: asyncio.Task[Any]) -> None:
        self.workers.discard(worker)
        self._free_place(group)
        self.freed.set()
        if not worker.cancelled() and worker.exception() is not None:
            logger.error("a group was lost to an error", exc_info=worker.exception())

    def cancel_timed_out(self, timeout_s: float) -> None:
        """Cancel groups that take longer; 0 or less lets them take any time."""
        if timeout_s <= 0:
            return
        for item_uuid, group in list(self.running_items.items()):
            if time.monotonic() - group.began_s > timeout_s:
                logger.warning(
                    "a group took longer than worker_timeout %g s and is cancelled: %r",
                    timeout_s,
                    group.item[-1],
                )
                if group.worker is not None:
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

    def _note_duration(self, group: Group, is_collected: bool) -> None:
        """Add to the framework's lists."""
        env, took_s = self._env, time.monotonic() - group.began_s
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
