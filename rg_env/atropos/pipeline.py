"""The one loop over groups: items, their completions, their scores, and who gets them.

    command     items                      a group goes to              module
    serve       hook get_next_item         dumps, metrics, the API      serve_loop
    process     hook get_next_item         dumps, metrics, rows         process_run
    screen      the same, tasks in turn    the same; then a table       process_run
    evaluate    the evaluation items       samples, then the numbers    evaluation_run

`Flight` has the loop. `Pipeline.work_on` takes a group from its item to the ending of
each of its rollouts. It calls the framework's hooks, each once:

    collect_trajectories    ours calls `collect`: query, and have the hook `score` score
    postprocess_histories
    handle_send_to_api      ours calls `GroupDelivery.deliver`: checks, rows, the API

A hook gets the arguments that the framework gives it, and works on the group of the
task that it runs in, or of the task that started this one: `Pipeline.group_for`.

Mends B4 and B13 of docs/host_defects.md: the framework cancels groups in flight when
there is one too many, and drops a group that raises without a traceback or a pause.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import Any

from atroposlib.envs.base import BaseEnv

from rg_env.atropos.rollout_requests import RolloutRequests
from rg_env.ending import cancel_and_wait, finish_or_cancel
from rg_env.errors import RunError
from rg_env.inference.request_failures import RequestFailedError
from rg_env.inference.servers import Servers
from rg_env.items.group_scorer import ScoringUnavailableError
from rg_env.logs import is_worth_a_line
from rg_env.reports.metrics import Metrics
from rg_env.retries import tried_again
from rg_env.rollouts.group import Ending, Group, Ledger, rollouts_in

logger = logging.getLogger(__name__)

SCORING_TRIES = 2
"""Scorings of one group by a broken worker pool before the group is lost."""

ITEM_TRIES = 5
"""Groups of one item that may be lost before the item is."""

ERROR_PAUSE_S = 1.0
"""After an error of ours, so that a fault that repeats does not spin."""

SUMMARY_EVERY_S = 30.0

current_group: ContextVar[Group | None] = ContextVar("current_group", default=None)
"""The group that a task works on."""


class RowRefusedError(RunError):
    """The disk does not take the row of a group that nobody else has."""


class Flight:
    """What is worked on at the same time.

    Args:
        has_grace: Whether what is at work at the end of a run may end by itself.

    Attributes:
        workers: The task of each.
        freed: Set when another one may perhaps begin.
    """

    def __init__(self, *, has_grace: bool = True) -> None:
        self._end = finish_or_cancel if has_grace else cancel_and_wait
        self.workers: set[asyncio.Task[Any]] = set()
        self.freed = asyncio.Event()
        self._error: BaseException | None = None

    async def fill(
        self,
        next_work: Callable[[], Awaitable[Coroutine[Any, Any, None] | None]],
        may_begin: Callable[[], bool],
        for_s: float = math.inf,
    ) -> int:
        """Begin work while it may, for `for_s` at most; return how much was begun.

        `next_work` returns what is done next, None where there is nothing.
        """
        count, end_s = 0, time.monotonic() + for_s
        while may_begin():
            if time.monotonic() > end_s:
                self.freed.set()
                break
            work = await next_work()
            if work is None:
                break
            worker = asyncio.get_running_loop().create_task(work)
            self.workers.add(worker)
            worker.add_done_callback(self._note_end)
            count += 1
            # It begins now; and what else is due does not wait for a whole burst.
            await asyncio.sleep(0)
        return count

    def _note_end(self, worker: asyncio.Task[Any]) -> None:
        self.workers.discard(worker)
        self.freed.set()
        if not worker.cancelled():
            self._error = self._error or worker.exception()

    async def run(
        self,
        next_work: Callable[[], Awaitable[Coroutine[Any, Any, None] | None]],
        may_begin: Callable[[], bool],
    ) -> None:
        """Work until nothing more may begin and all has ended.

        Raises:
            Exception: What some work has raised; the rest is ended after a short grace.
        """
        try:
            while True:
                self.freed.clear()
                await self.fill(next_work, may_begin)
                if self._error is not None:
                    raise self._error
                if not self.workers:
                    return
                await self.freed.wait()
        finally:
            await self._end(self.workers)

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


class Pipeline:
    """Takes groups of an environment from their item to their ending.

    Attributes:
        flight: The groups of `serve`.
        running_items: Each id, to its group in `serve`; a framework's name.
        querying: Groups whose completions an inference server is generating.
        backlog: Lost groups whose items are sampled again before any new one; a
            subclass may add items of its own.
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
        self.flight = Flight()
        self.running_items: dict[str, Group] = {}
        self.querying: set[Group] = set()
        self.backlog: list[Any] = []
        self._summary_s = time.monotonic()  # when the newest one was logged

    # -- a group, from its item to its ending ------------------------------------------

    async def next_group(self) -> Group | None:
        """Return a group of an item of the backlog, or else of a new one, if any."""
        item = self.backlog.pop() if self.backlog else await self._env.get_next_item()
        if item is None or isinstance(item, Group):
            return item
        return Group(item, self._ledger)

    def group_for(self, item: Any = None, data: Any = None) -> Group:
        """Return the group that a hook works on; a new one if nothing works on any."""
        group = current_group.get()
        return group or Group(item, self._ledger, in_flight=rollouts_in(data))

    async def work_on(self, group: Group, **how: Any) -> None:
        """Query, score and deliver a group; each of its rollouts has an ending then.

        What a hook drops is `discarded`. What it loses to an error is `failed`, and
        the item is sampled again. `how` is what `handle_send_to_api` is told besides.

        Raises:
            RowRefusedError: The disk does not take its row.

        Source: atroposlib 0.4.0, BaseEnv.handle_env(); differs: that, and errors have
        their traceback.
        """
        env, otherwise = self._env, Ending.CANCELLED
        before = current_group.set(group)
        try:
            data, again = await env.collect_trajectories(group.item)
            self.backlog += [
                self._next_try(group) if item is group.item else item for item in again
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
        except Exception as error:
            otherwise = Ending.FAILED
            self._metrics.events["errors"] += 1
            count = self._metrics.events["errors"]
            if is_worth_a_line(count):
                logger.error("a group failed (error %d)", count, exc_info=error)
            await asyncio.sleep(ERROR_PAUSE_S)
            # Else all of it was delivered before the error.
            if group.in_flight or group.data is None:
                self._retry(group)
        finally:
            current_group.reset(before)
            group.end(otherwise)

    async def collect(self, item: Any) -> tuple[Any, list[Any]]:
        """Do what the hook `collect_trajectories` does: query, and have them scored."""
        env, group, began = self._env, self.group_for(item), time.monotonic()
        group.query(size := env.config.group_size)
        answered = functools.partial(self._free_place, group)

        def note_retry(error: Exception) -> None:
            self._metrics.events["scoring_retries"] += 1

        try:
            completed = await self._requests.query(item, env.limit_tokens, answered)
            answered()  # also where the client is a subclass's own, which does not
            # A broken pool gets another try before it is an error.
            data = await tried_again(
                lambda: env.score(completed),
                lambda error: isinstance(error, ScoringUnavailableError),
                note_retry,
                tries=SCORING_TRIES,
            )
        except RequestFailedError as error:
            group.end(Ending.UNANSWERED, size)
            await self._servers.note_failure(error.failure)
            # An outage is not the fault of the item, and costs it no try.
            is_retried = self._servers.is_down or self._may_retry(group)
        except ScoringUnavailableError as error:
            group.end(Ending.UNSCORED, size)
            logger.error("a group is lost: %s", error)
            is_retried = self._may_retry(group)
        else:
            if data is None:
                group.end(Ending.ZERO_VARIANCE, size)
            elif isinstance(data, dict):  # as ours is
                data["seconds"] = round(time.monotonic() - began, 3)
            return data, []
        return None, [item] if is_retried else []

    # -- lost groups -------------------------------------------------------------------

    def _may_retry(self, group: Group) -> bool:
        """Count a lost try; return whether the item is to be sampled again.

        Its rollouts are counted as lost at every try.
        """
        group.tries += 1
        if group.tries < ITEM_TRIES:
            return True
        logger.error("%r is given up after %d tries", group.item[-1], group.tries)
        return False

    def _next_try(self, group: Group) -> Group:
        return Group(group.item, self._ledger, group.tries)

    def _retry(self, group: Group) -> None:
        if self._may_retry(group):
            self.backlog.append(self._next_try(group))

    # -- the groups of `serve` ---------------------------------------------------------

    async def serve_next(self) -> Coroutine[Any, Any, None] | None:
        """Return the work on the next group of `serve`, if there is one."""
        group = await self.next_group()
        return None if group is None else self._serve(group)

    async def _serve(self, group: Group) -> None:
        """Have the hook `handle_env` work on a group, which it gets by its id."""
        item_uuid = str(uuid.uuid4())
        group.worker = asyncio.current_task()
        # The time that a lost group spent in the backlog does not count.
        group.start_time, group.began_s = time.time(), time.monotonic()
        self.running_items[item_uuid] = group
        self.querying.add(group)
        try:
            await self._env.handle_env(item_uuid)
        except Exception as error:
            logger.error("a group was lost to an error", exc_info=error)
        finally:
            self._free_place(group)

    async def handle(self, item_uuid: str) -> Any:
        """Do what the hook `handle_env` does: work on a group that was started.

        If the group is cancelled before it is collected, its item is sampled again.
        """
        env, group = self._env, self.running_items[item_uuid]
        try:
            await self.work_on(group)
        except asyncio.CancelledError:
            # Unless its time was over, which took it out and counted a try.
            if item_uuid in self.running_items and group.data is None:
                self.backlog.append(self._next_try(group))
            raise
        finally:
            self.running_items.pop(item_uuid, None)
        is_collected = group.data is not None
        took_s = (group.collected_s or time.monotonic()) - group.began_s
        env.task_duration.append(took_s)
        env.task_successful.append(int(is_collected))
        kind = "succeeded" if is_collected else "failed"
        getattr(env, f"{kind}_task_duration").append(took_s)
        await env.cleanup()
        if time.monotonic() - self._summary_s >= SUMMARY_EVERY_S:
            self._summary_s = time.monotonic()
            await self.say_summary()
        return group.data

    def _free_place(self, group: Group) -> None:
        """Free the place of a group that has its replies, or has ended."""
        if group in self.querying:
            self.querying.remove(group)
            self.flight.freed.set()

    def cancel_timed_out(self, timeout_s: float) -> None:
        """Cancel groups whose collection takes longer; 0 or less cancels none."""
        for item_uuid, group in list(self.running_items.items()):
            is_late = 0 < timeout_s < time.monotonic() - group.began_s
            if is_late and group.data is None and group.worker is not None:
                logger.warning(
                    "a group took longer than worker_timeout %g s and is cancelled: %r",
                    *(timeout_s, group.item[-1]),
                )
                group.worker.cancel()
                self.running_items.pop(item_uuid)
                self._retry(group)

    async def end(self) -> None:
        """End what is in flight after a short grace, and evaluations at once."""
        evaluations = cancel_and_wait([self._env.eval_runner, *self._env.eval_workers])
        await asyncio.gather(evaluations, finish_or_cancel(self.flight.workers))

    async def say_summary(self) -> None:
        """Log how the rollouts have ended so far, if there are any."""
        if self._ledger.queried:
            logger.info("%s", self._metrics.summary())
