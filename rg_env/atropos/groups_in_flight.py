"""The groups in flight: started, timed out, ended, their items sampled again.

Mends B4 and B13 of docs/host_defects.md: groups in flight are cancelled when a count
overshoots by one, and a group that raises is dropped without a traceback or a pause.
What became of every rollout is counted, also where it was cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from atroposlib.envs.base import BaseEnv

from rg_env import patience
from rg_env.atropos.delivery import rollouts_in
from rg_env.atropos.lifetime import cancel_and_wait, finish_or_cancel
from rg_env.atropos.rollout_requests import RolloutRequests
from rg_env.inference.request_failures import RequestFailedError
from rg_env.inference.servers import Servers
from rg_env.items.group_scorer import ScoringUnavailableError
from rg_env.logs import is_worth_a_line
from rg_env.reports.metrics import Metrics
from rg_env.rollouts.ledger import Ending, Ledger

logger = logging.getLogger(__name__)

MAX_LOST_ITEMS = 1024


class GroupsInFlight:
    """The groups that were started and have not ended.

    Attributes:
        workers: The task of each group; a framework's name.
        running_items: Of each group its item, task and start, by an id.
        backlog: Items to be sampled before any new one.
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
        self._answered: set[asyncio.Task[Any]] = set()
        self._lost_items: dict[int, tuple[Any, int]] = {}
        self._settled: dict[asyncio.Task[Any] | None, int] = {}
        self.workers: set[asyncio.Task[Any]] = set()
        self.running_items: dict[str, dict[str, Any]] = {}
        self.backlog: list[Any] = []
        self.freed = asyncio.Event()

    # -- places ------------------------------------------------------------------------

    @property
    def querying(self) -> int:
        """Groups that an inference server is queried for."""
        return len(self.workers) - len(self._answered)

    def note_answered(self, task: asyncio.Task[Any] | None) -> None:
        """Free the place of the group that a task works on: it has its replies."""
        if task is not None and task in self.workers:
            self._answered.add(task)
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

    # -- beginning and ending ----------------------------------------------------------

    async def next_item(self) -> Any:
        """Return an item that is to be sampled again, or else a new one, if any."""
        if self.backlog:
            return self.backlog.pop()
        return await self._env.get_next_item()

    def start(
        self, item: Any, carry: Callable[[str], Coroutine[Any, Any, Any]]
    ) -> asyncio.Task[Any]:
        """Start a group; `carry`, the hook `handle_env`, takes an item all its way."""
        item_uuid = str(uuid.uuid4())
        worker = asyncio.get_running_loop().create_task(carry(item_uuid))
        self.running_items[item_uuid] = {
            "item": item,
            "worker": worker,
            "start_time": time.time(),  # of the framework; the system's clock jumps
            "began_s": time.monotonic(),
        }
        self.workers.add(worker)
        worker.add_done_callback(self._note_end)
        return worker

    def _note_end(self, worker: asyncio.Task[Any]) -> None:
        self.workers.discard(worker)
        self._answered.discard(worker)
        self.freed.set()
        if not worker.cancelled() and worker.exception() is not None:
            logger.error("a group was lost to an error", exc_info=worker.exception())

    def cancel_timed_out(self, timeout_s: float) -> None:
        """Cancel groups that take longer; 0 or less lets them take any time."""
        if timeout_s <= 0:
            return
        for item_uuid, running in list(self.running_items.items()):
            if time.monotonic() - running["began_s"] > timeout_s:
                logger.warning(
                    "a group took longer than worker_timeout %g s and is cancelled: %r",
                    timeout_s,
                    running["item"][-1],
                )
                running["worker"].cancel()
                self.running_items.pop(item_uuid)
                self.backlog.extend(self.again(running["item"]))

    async def end(self) -> None:
        """End what is in flight after a short grace, and evaluations at once."""
        evaluations = cancel_and_wait([self._env.eval_runner, *self._env.eval_workers])
        await asyncio.gather(evaluations, finish_or_cancel(self.workers))

    def again(self, item: Any) -> list[Any]:
        """Return the item of a lost group, to be sampled again; none after many tries.

        Its rollouts are counted as lost at every try.
        """
        key = id(item)
        _, tries = self._lost_items.pop(key, (item, 0))
        if tries + 1 >= patience.ITEM_TRIES:
            logger.error("%r is given up after %d tries", item[-1], tries + 1)
            return []
        self._lost_items[key] = (item, tries + 1)
        if len(self._lost_items) > MAX_LOST_ITEMS:
            del self._lost_items[next(iter(self._lost_items))]
        return [item]

    # -- an item's way -----------------------------------------------------------------

    async def carry(self, item_uuid: str) -> Any:
        """Take an item all its way; return its group, None where there is none.

        An item whose task is cancelled before it has its group is sampled again,
        whoever cancels, and so is one that is lost to an error.

        Source: atroposlib 0.4.0, BaseEnv.handle_env(); differs: that, errors have
        their traceback, and items are not written out for a log that is off.
        """
        running = self.running_items[item_uuid]
        try:
            group = await self.collected(running["item"])
        except asyncio.CancelledError:
            if self.running_items.pop(item_uuid, None) is not None:
                self.backlog.append(running["item"])
            raise
        self.running_items.pop(item_uuid, None)
        self._note_duration(running, group is not None)
        if group is not None:
            try:
                await self.deliver(group, running["item"])
            except Exception as error:  # noqa: BLE001 - of a subclass or W&B
                await self._note_error(error)
        await self._env.cleanup()
        return group

    def _note_duration(self, running: Mapping[str, Any], is_group: bool) -> None:
        """Add to the framework's lists."""
        env, took_s = self._env, time.monotonic() - running["began_s"]
        env.task_duration.append(took_s)
        env.task_successful.append(int(is_group))
        if is_group:
            env.succeeded_task_duration.append(took_s)
            env.last_completed_item = running["item"]
        else:
            env.failed_task_duration.append(took_s)

    async def deliver(self, group: Any, item: Any, **how: Any) -> None:
        """Hand a group to the hook that delivers it.

        What a subclass keeps from that hook is counted, and its item sampled again
        where an error is the reason.
        """
        task = asyncio.current_task()
        ended_as = Ending.DISCARDED
        self._settled[task] = 0
        try:
            await self._env.handle_send_to_api(group, item, **how)
        except BaseException as error:
            is_cancel = isinstance(error, asyncio.CancelledError)
            ended_as = Ending.CANCELLED if is_cancel else Ending.FAILED
            raise
        finally:
            left = rollouts_in(group) - self._settled.pop(task)
            if left > 0:
                self._ledger.settle(ended_as, left)
                is_lost = ended_as is Ending.FAILED
                self.backlog.extend(self.again(item) if is_lost else [])

    def settle(self, ending: Ending, rollouts: int) -> None:
        """Count how rollouts that the hook has delivered ended."""
        self._ledger.settle(ending, rollouts)
        task = asyncio.current_task()
        if task in self._settled:
            self._settled[task] += rollouts

    async def collected(self, item: Any) -> Any:
        """Return an item's group, or several, after all hooks; None without one."""
        try:
            group, again = await self._env.collect_trajectories(item)
            self.backlog.extend(again)
            return await self._postprocessed(group) if group else None
        except Exception as error:  # noqa: BLE001 - ours raise none, a subclass may
            await self._note_error(error)
            self.backlog.extend(self.again(item))
            return None

    async def _postprocessed(self, group: Any) -> Any:
        """Apply the hook; what a subclass drops or loses in it is counted."""
        before = rollouts_in(group)
        try:
            left = await self._env.postprocess_histories(group)
        except asyncio.CancelledError:
            self._ledger.settle(Ending.CANCELLED, before)
            raise
        except Exception:
            self._ledger.settle(Ending.FAILED, before)
            raise
        if rollouts_in(left) < before:
            self._ledger.settle(Ending.DISCARDED, before - rollouts_in(left))
        return left

    # -- a group -----------------------------------------------------------------------

    async def collect(self, item: Any) -> tuple[Any, list[Any]]:
        """Query a group of rollouts of an item, and have the hook `score` score them.

        Returns:
            The group, None where there is none; and the item, if it is to be sampled
            again.
        """
        size = self._env.config.group_size
        self._ledger.query(size)
        group, again, began = None, [], time.monotonic()
        ended_as = Ending.CANCELLED
        try:
            rollouts = await self._requests.for_training(item, self.note_answered)
            group = await self._scored(rollouts)
            ended_as = Ending.ZERO_VARIANCE
            if isinstance(group, dict):  # as ours is
                group["seconds"] = round(time.monotonic() - began, 3)
        except RequestFailedError as error:
            await self._servers.note_failure(error.failure)
            again = [item] if self._servers.is_down else self.again(item)
            ended_as = Ending.UNANSWERED
        except ScoringUnavailableError as error:
            logger.error("a group is lost: %s", error)
            again, ended_as = self.again(item), Ending.UNSCORED
        except Exception as error:  # noqa: BLE001 - the framework would drop it and spin
            await self._note_error(error)
            again, ended_as = self.again(item), Ending.FAILED
        finally:
            if group is None:
                self._ledger.settle(ended_as, size)
        return group, again

    async def _scored(self, rollouts: Sequence[Mapping[str, Any]]) -> Any:
        """Score a group; a broken pool gets another try before that is an error."""

        def note(error: Exception) -> None:
            self._metrics.events["scoring_retries"] += 1

        return await patience.tried_again(
            lambda: self._env.score(rollouts),
            lambda error: isinstance(error, ScoringUnavailableError),
            note,
            tries=patience.SCORING_TRIES,
        )

    async def _note_error(self, error: Exception) -> None:
        """Log an error with its traceback, ever more seldom, and wait a moment."""
        self._metrics.events["errors"] += 1
        count = self._metrics.events["errors"]
        if is_worth_a_line(count):
            logger.error("a group failed (error %d)", count, exc_info=error)
        await asyncio.sleep(patience.ERROR_PAUSE_S)
