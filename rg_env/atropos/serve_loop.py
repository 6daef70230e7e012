"""The main loop of `serve`.

Mends B1 and B3 (a fixed wait of 5 s, a tick before a free worker is used), B4 (groups
in flight are cancelled when a count overshoots by one), B5 (steps missed by a modulo),
B11 (an evaluation's error is never seen, its start throws groups away), B8 and B16
(an IndexError in the W&B rows loses groups, only one server's numbers survive).
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
import uuid
from importlib import import_module
from typing import Any

from atroposlib.envs.base import EvalHandlingEnum

from rg_env.atropos import checkpoint_files
from rg_env.atropos.checkpoint_lineage import Lineage
from rg_env.atropos.delivery import SendingEnv
from rg_env.atropos.flight_limits import Limits, groups_to_start, queue_holds_the_end
from rg_env.atropos.lifetime import cancel_and_wait
from rg_env.off_loop import off_loop

logger = logging.getLogger(__name__)

TICK_S = 0.1

HOST_LISTS = (
    "completion_lengths",
    "failed_task_duration",
    "mainloop_timings",
    "succeeded_task_duration",
    "task_duration",
    "task_successful",
    "workers_added_list",
)
MAX_HOST_VALUES = 10_000

MAX_ITEM_TRIES = 5
"""Groups of one item that may be lost before the item is."""

MAX_LOST_ITEMS = 1024


def passed(interval: int, before: int, now: int) -> bool:
    """Say whether a multiple of the interval lies in (before, now]; 0 has none.

    An API that was restarted begins anew: its steps pass nothing on their way back.
    """
    return interval > 0 and now // interval > before // interval


class ServingEnv(SendingEnv):
    """An environment that feeds a trainer until its last step."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Build the environment; starts no group."""
        super().__init__(*args, **kwargs)
        self._worker_freed = asyncio.Event()
        self._is_serving = False
        self._lineage: Lineage | None = None
        self._answered: set[asyncio.Task[Any]] = set()
        self._lost_items: dict[int, tuple[Any, int]] = {}

    async def env_manager(self) -> None:
        """`serve`: feed the trainer until its last step."""
        await self._run_to_its_end(self._serve())

    async def _serve(self) -> None:
        # The host's percentiles would import it at the first step, for 20 ms.
        await asyncio.gather(self.setup(), off_loop(import_module, "numpy.ma"))
        await self.setup_wandb()
        await self.register_env()
        await self.get_server_info()
        self._is_serving = True
        if self.checkpoint_interval > 0:
            self._begin_ledger()
            # From here on the files are this life's, should it be killed at once.
            self._save_or_say(self.curr_step)
        await self.get_status()
        polling = asyncio.create_task(self._keep_status())
        try:
            await self._keep_busy(polling)
        finally:
            await cancel_and_wait([polling])

    async def _keep_status(self) -> None:
        """Keep the API's status fresh, so that no refill waits for it.

        Whoever sends a group asks for it too, and that is often enough for a while.
        """
        while True:
            await asyncio.sleep(max(0.0, TICK_S - self._status_age_s()))
            if self._status_age_s() >= TICK_S:
                await self.get_status()

    async def _keep_busy(self, polling: asyncio.Task[None]) -> None:
        """Keep the inference servers busy until the run is complete."""
        while not polling.done():
            began = time.monotonic()
            await self.env_step_checks()
            total_steps = self.config.total_steps
            if queue_holds_the_end(self._limits(), self.status_dict, total_steps):
                logger.info("step %d: the run is complete", self.curr_step)
                # No step is seen to pass that would log what came since the last one.
                await self._log_if_enough_was_sent()
                return
            await self.add_train_workers()
            self._cancel_timed_out()
            await self._next_tick()
            self.mainloop_timings.append(time.monotonic() - began)
            self._bound_host_lists()
        await polling

    def _bound_host_lists(self) -> None:
        """Keep what the host collects between two steps from growing for days."""
        for name in HOST_LISTS:
            del getattr(self, name)[:-MAX_HOST_VALUES]

    async def _next_tick(self) -> None:
        """Wait for a worker to be free, at most a tick."""
        self._worker_freed.clear()
        freed = asyncio.ensure_future(self._worker_freed.wait())
        try:
            # Before Python 3.12, `wait_for` swallows a cancel, the end of the run, that
            # comes just when a worker is freed.
            await asyncio.wait({freed}, timeout=TICK_S)
        finally:
            freed.cancel()

    def _limits(self) -> Limits:
        return Limits(
            max_workers=self.max_num_workers,
            group_size=self.config.group_size,
            batch_size=self.config.batch_size,
            own_batch_size=self.derived_batch_size,
            max_batches_offpolicy=self.config.max_batches_offpolicy,
            min_batch_allocation=self.config.min_batch_allocation,
        )

    # -- groups in flight --------------------------------------------------------------

    def _evaluation_runs(self) -> bool:
        runner: asyncio.Task[Any] | None = self.eval_runner
        return runner is not None and not runner.done()

    async def add_train_workers(self) -> None:
        """Start groups until as many are in flight as may be; cancel none."""
        added = 0
        while self._may_start():
            item = self.backlog.pop() if self.backlog else await self.get_next_item()
            if item is None:
                break
            self._start_worker(item)
            added += 1
            # Replies often come in bursts: what else is due does not wait for them all.
            await asyncio.sleep(0)
        self.workers_added_list.append(added)

    def _may_start(self) -> bool:
        """Say whether another group may be started now."""
        limits, in_flight = self._limits(), len(self.workers)
        asking = in_flight - len(self._answered)
        if self._evaluation_runs():
            if self.config.eval_handling == EvalHandlingEnum.STOP_TRAIN:
                return False
            if self.config.eval_handling == EvalHandlingEnum.LIMIT_TRAIN:
                limited = int(self.max_num_workers * self.config.eval_limit_ratio)
                limits = dataclasses.replace(limits, max_workers=limited)
        total_steps = self.config.total_steps
        status = self.status_dict
        return groups_to_start(limits, status, asking, in_flight, total_steps) > 0

    def _note_answered(self, task: asyncio.Task[Any] | None) -> None:
        """Free the place of the group that a task works on: it has its replies."""
        if task is not None and task in self.workers:
            self._answered.add(task)
            self._worker_freed.set()

    def _start_worker(self, item: Any) -> None:
        item_uuid = str(uuid.uuid4())
        worker = asyncio.get_running_loop().create_task(self.handle_env(item_uuid))
        self.running_items[item_uuid] = {
            "item": item,
            "worker": worker,
            "start_time": time.time(),
        }
        self.workers.add(worker)
        worker.add_done_callback(lambda task: self._worker_done(task, item))

    async def handle_env(self, item_uuid: str) -> Any:
        """Take an item all its way; return its group, None where there is none.

        An item whose worker is cancelled before it has its group is asked again,
        whoever cancels, and so is one that is lost to an error.

        Source: atroposlib 0.4.0, BaseEnv.handle_env(); differs: that, errors have
        their traceback, and items are not written out for a log that is off.
        """
        running = self.running_items[item_uuid]
        try:
            group = await self._collected(running["item"])
        except asyncio.CancelledError:
            if self.running_items.pop(item_uuid, None) is not None:
                self.backlog.append(running["item"])
            raise
        self.running_items.pop(item_uuid, None)
        self._note_duration(time.time() - running["start_time"], group is not None)
        if group is not None:
            try:
                await self.handle_send_to_api(group, running["item"])
            except Exception as error:  # noqa: BLE001 - of a subclass or W&B
                await self._note_error(error)
        await self.cleanup()
        return group

    async def _collected(self, item: Any) -> Any:
        """Return an item's group, or several, after all hooks; None without one."""
        try:
            group, again = await self.collect_trajectories(item)
            self.backlog.extend(again)
            return await self._postprocessed(group) if group else None
        except Exception as error:  # noqa: BLE001 - ours raise none, a subclass may
            await self._note_error(error)
            self.backlog.extend(self._again(item))
            return None

    async def _postprocessed(self, group: Any) -> Any:
        return await self.postprocess_histories(group)

    async def _note_error(self, error: Exception) -> None:
        """Log an error that cost a group; a subclass counts it."""
        logger.error("a group failed", exc_info=error)

    def _note_duration(self, seconds: float, is_successful: bool) -> None:
        self.task_duration.append(seconds)
        self.task_successful.append(int(is_successful))
        times = (self.failed_task_duration, self.succeeded_task_duration)
        times[is_successful].append(seconds)

    def _worker_done(self, worker: asyncio.Task[Any], item: Any) -> None:
        self.workers.discard(worker)
        self._answered.discard(worker)
        self._worker_freed.set()
        if worker.cancelled():
            return
        error = worker.exception()
        if error is not None:
            logger.error("a group was lost to an error", exc_info=error)
        elif worker.result():
            self.last_completed_item = item

    def _cancel_timed_out(self) -> None:
        timeout_s = self.config.worker_timeout
        if timeout_s <= 0:
            return
        for item_uuid, running in list(self.running_items.items()):
            if time.time() - running["start_time"] > timeout_s:
                logger.warning(
                    "a group took longer than worker_timeout %g s and is cancelled: %r",
                    timeout_s,
                    running["item"][-1],
                )
                running["worker"].cancel()
                self.running_items.pop(item_uuid)
                self.backlog.extend(self._again(running["item"]))

    def _again(self, item: Any) -> list[Any]:
        """Return the item of a lost group, to be asked again; none after many tries.

        Its rollouts are counted as lost at every try.
        """
        key = id(item)
        _, tries = self._lost_items.pop(key, (item, 0))
        if tries + 1 >= MAX_ITEM_TRIES:
            logger.error("%r is given up after %d tries", item[-1], tries + 1)
            return []
        self._lost_items[key] = (item, tries + 1)
        if len(self._lost_items) > MAX_LOST_ITEMS:
            del self._lost_items[next(iter(self._lost_items))]
        return [item]

    # -- steps -------------------------------------------------------------------------

    async def env_step_checks(self) -> None:
        """Evaluate, save and log when the step that asks for it is passed."""
        now = self.status_dict["current_step"]
        if now == self.curr_step:
            return
        if passed(self.config.steps_per_eval, self.curr_step, now):
            self._start_evaluation()
        interval = self.checkpoint_interval
        if passed(interval, self.curr_step, now):
            self._save_or_say(now // interval * interval)
        self.curr_step = now
        await self._log_if_enough_was_sent()

    async def _log_if_enough_was_sent(self) -> None:
        if self._sent_enough_to_log():
            self.items_sent_this_step = 0
            await self.wandb_log({})

    def _sent_enough_to_log(self) -> bool:
        sent: int = self.items_sent_this_step
        return bool(sent >= self.config.min_items_sent_before_logging)

    def _start_evaluation(self) -> None:
        if self._evaluation_runs():
            logger.warning("the last evaluation still runs; this one is left out")
            return
        self.eval_runner = asyncio.get_running_loop().create_task(self.evaluate())
        self.eval_runner.add_done_callback(_log_failed_evaluation)

    def save_checkpoint(self, step: int, data: dict[str, Any] | None = None) -> None:
        """Write `data` as the checkpoint of a step, whole or not at all."""
        if data is not None:
            checkpoint_files.write(self._checkpoints().path(step), data)

    def _checkpoints(self) -> Lineage:
        if self._lineage is None:
            name = self.wandb_prepend or self.name
            self._lineage = Lineage(self.checkpoint_dir, name)
        return self._lineage

    async def _note_registration(self) -> None:
        """Remember our registration, and end those of killed instances like us.

        The API would count them in for ever, and wait for their part of every batch.
        """
        if self.checkpoint_interval <= 0 or self.env_id is None:
            return
        url, lineage = self._api.url, self._checkpoints()
        lineage.note_registration(url, self.env_id)
        for env_id in lineage.killed_env_ids(url, self.env_id):
            logger.warning("the API is told that environment %d was killed", env_id)
            await self._disconnect(env_id)

    def _begin_ledger(self) -> None:
        """Keep a ledger beside the checkpoints; a subclass has one."""

    def _save_or_say(self, step: int) -> None:
        """Save a checkpoint; a disk that refuses it does not end the run."""
        try:
            self.save_checkpoint(step)
        except OSError as error:
            logger.error("the checkpoint of step %d is not saved: %s", step, error)

    async def _close_files(self) -> None:
        """Save a last checkpoint where the trainer saves, and complete the files.

        Every rollout has its fate by then. A run that ends before it serves, because
        its checkpoint cannot be loaded for example, has nothing to save.
        """
        await super()._close_files()
        if self._is_serving and self.checkpoint_interval > 0:
            self._save_or_say(self.curr_step)
        if self._lineage is not None:
            self._lineage.release()

    # -- numbers -----------------------------------------------------------------------

    async def add_rollouts_for_wandb(self, scored_data: Any, item: Any = None) -> None:
        """Keep a few rollouts of a group for the W&B table, if W&B is on."""
        if not self.config.use_wandb:
            return
        groups = scored_data if isinstance(scored_data, list) else [scored_data]
        wanted = self.config.num_rollouts_per_group_for_logging
        for group in groups:
            size = len(group["tokens"])
            count = size if wanted == -1 else min(wanted, size)
            texts = await asyncio.to_thread(
                self.tokenizer.batch_decode, group["tokens"][:count]
            )
            kept = list(zip(texts, group["scores"][:count], strict=True))
            self.rollouts_for_wandb.append(kept)
        excess = len(self.rollouts_for_wandb) - self.config.num_rollouts_to_keep
        del self.rollouts_for_wandb[: max(0, excess)]

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Log to W&B, with the numbers of every server."""
        metrics = dict(wandb_metrics or {})
        for i, server in enumerate(self.server.servers[:-1]):
            metrics.update(await server.wandb_metrics({}, f"server_{i}"))
        await super().wandb_log(metrics)


def _log_failed_evaluation(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("an evaluation failed", exc_info=task.exception())
