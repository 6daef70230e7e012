"""`serve`: register at the API, and keep the inference servers busy to the last step.

Mends B1, B3, B5, B11, B20 and B26 of docs/host_defects.md: the framework starts groups
without yielding, waits for 5 s at the start and for a tick before it uses a free slot,
misses steps, loses the error of an evaluation, takes the API's step for the trainer's,
and lets a killed environment stop all batches.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import time
import uuid
from collections.abc import Mapping
from typing import Any

from atroposlib.envs.base import EvalHandlingEnum

from rg_env.atropos import start_checks
from rg_env.atropos.api_client import ApiError, ApiSession
from rg_env.atropos.hooks import Hooks
from rg_env.errors import SettingError
from rg_env.run.checkpoints import Checkpoints, crosses_multiple
from rg_env.run.group import Group
from rg_env.run.group_loop import Run, Window
from rg_env.shutdown import IN_FLIGHT_GRACE_S, cancel_and_wait

logger = logging.getLogger(__name__)

TICK_S = 0.1
SUMMARY_EVERY_S = 30.0


def groups_to_the_end(config: Any, status: Mapping[str, int]) -> int:
    """Return how many groups the API still needs for the last step of the run.

    The run ends one batch past its last step, as the framework counts: a trainer that
    reads a batch ahead would otherwise wait for it forever. The groups in the queue are
    subtracted because the API's step is ahead of the trainer's.
    """
    steps = config.total_steps + 1 - status["current_step"]
    groups = math.ceil(steps * config.batch_size / config.group_size)
    return int(groups - status["queue_size"])


def groups_to_the_minimum(config: Any, status: Mapping[str, int]) -> int:
    """Return how many groups the queue lacks for the minimum allocation.

    The API allots it in packs of the largest group size of any environment.
    """
    size = config.group_size
    pack = status["max_group_size"]
    share = config.min_batch_allocation * config.batch_size
    packs = math.ceil(share * config.max_batches_offpolicy / pack) + pack // size
    return int(math.ceil(packs * pack / size) - status["self_queue_size"])


class Serving(Hooks):
    """The hooks of `serve`, which feeds a trainer until its last step."""

    _hooked_run: Run  # its parts call the hooks
    _window: Window
    _session: ApiSession
    _checkpoints: Checkpoints
    _querying: set[str]  # groups whose completions are being generated, by their UUIDs
    eval_runner: asyncio.Task[Any] | None
    items_sent_this_step: int
    running_items: dict[str, Any]

    async def _serve(self) -> None:
        """Keep the inference servers busy until the run is complete.

        Groups are started in a task beside this loop, so that it waits for no item.
        """
        await self.setup()
        await self.setup_wandb()
        await self._join()
        self._checkpoints.begin()
        await self.get_status()
        config = self.config
        session = self._session
        if config.worker_timeout > 0:
            self._hooked_run.score_within_s = config.worker_timeout
        filling = asyncio.create_task(self._keep_filled())
        summary_s = time.monotonic()
        try:
            while not filling.done():
                await self.server.update_weight(session.status["env_weight"])
                await self._renew_if_due()
                # Before the check for the end: the last step may need a checkpoint too.
                await self.env_step_checks()
                if groups_to_the_end(config, session.status) <= 0:
                    # The API may have counted a step more than the trainer took.
                    logger.info("the run of %d steps is complete", config.total_steps)
                    break
                if time.monotonic() - summary_s >= SUMMARY_EVERY_S:
                    summary_s = time.monotonic()
                    await self.metrics.log_summary()
                self._window.freed.set()  # the status may allow more groups
                await asyncio.wait({filling}, timeout=TICK_S)
                await self.get_status()
            else:
                await filling  # raises the error that ended it
        finally:
            await cancel_and_wait([filling])
        # Groups that were sent since the last step are not logged yet.
        await self._log_if_enough_was_sent()

    async def _end_groups(self) -> None:
        """End groups in flight after a short grace, and evaluations at once."""
        evaluations = cancel_and_wait([self.eval_runner, *self.eval_workers])
        workers = cancel_and_wait(self._window.workers, IN_FLIGHT_GRACE_S)
        await asyncio.gather(evaluations, workers)

    # -- the trainer and its API -------------------------------------------------------

    async def setup_wandb(self) -> None:
        """Wait for the trainer, and start W&B with its project and group."""
        if self.config.use_wandb:
            self.wandb_group, self.wandb_project = await self._session.wandb_names()
        await self._start_wandb(self.config.wandb_name)

    async def _join(self) -> None:
        await self.register_env()
        await self.get_server_info()

    async def register_env(self) -> None:
        """Register at the API, and take over the run's settings from its reply.

        The first registration loads the checkpoint, unless the run is at step 0.
        """
        config = self.config
        is_first = self._session.env_id is None
        reply = await self._session.register(config.wandb_name or self.name, config)
        self.curr_step = reply["starting_step"]
        self.checkpoint_dir = reply["checkpoint_dir"]
        self.checkpoint_interval = reply["checkpoint_interval"]
        if not is_first:
            return
        # Keys of W&B begin with this name, so later registrations do not change it.
        self.wandb_prepend = reply["wandb_name"]
        start_checks.log_shard(config, self._session.env_id)
        if config.total_steps == -1:
            config.total_steps = reply["num_steps"]
        if config.total_steps == -1:
            raise SettingError(
                "env.total_steps: -1 takes the trainer's number of steps, which has"
                " none either; set one of the two"
            )
        self._checkpoints.beside_dumps = self.checkpoint_interval <= 0
        if self.curr_step > 0:
            self.load_checkpoint()
        else:
            logger.info("the run is at step 0: the stream begins with its first item")

    async def get_server_info(self) -> None:
        """Take over the trainer's batch size and maximum length."""
        config = self.config
        needs = ("batch_size", "max_token_len")
        info = await self._session.query("GET", "/info", needs=needs)
        if info["batch_size"] != -1:
            config.batch_size = info["batch_size"]
        if info["max_token_len"] != -1:
            self.max_token_len = info["max_token_len"]
        start_checks.check_batch(config.batch_size, config.group_size)
        self._prompts.check_limit(self.limit_tokens)

    async def get_status(self) -> None:
        """Read the API's status; register again if it has forgotten us."""
        while not await self._session.renew_status():
            logger.warning("the API no longer knows this environment")
            await self._join()

    async def _renew_if_due(self) -> None:
        """Register again if others may take this environment for a killed one."""
        config = self.config
        try:
            is_due = await self._session.check_registrations(config.batch_size)
        except ApiError:  # `get_status` logs an outage
            return
        if is_due:
            logger.info("registering again, so that nobody takes this for a killed one")
            await self._join()

    # -- steps -------------------------------------------------------------------------

    async def env_step_checks(self) -> None:
        """Evaluate, save a checkpoint and log, if a step that is due has passed."""
        now = self._session.status["current_step"]
        if now == self.curr_step:
            return
        if crosses_multiple(self.config.steps_per_eval, self.curr_step, now):
            self._start_evaluation()
        self._checkpoints.save_if_due(self.curr_step, now)
        self.curr_step = now
        await self._log_if_enough_was_sent()

    async def _log_if_enough_was_sent(self) -> None:
        if self.items_sent_this_step >= self.config.min_items_sent_before_logging:
            self.items_sent_this_step = 0
            await self.wandb_log({})

    def _start_evaluation(self) -> None:
        """Evaluate beside the training, unless the previous evaluation still runs."""

        async def evaluate() -> None:
            try:
                await self._evaluation.make_items()
                await self.evaluate()
            except Exception as error:
                logger.error("an evaluation failed", exc_info=error)

        if self._is_evaluating:
            logger.warning("the previous evaluation still runs; this one is skipped")
        else:
            self.eval_runner = asyncio.create_task(evaluate())

    @property
    def _is_evaluating(self) -> bool:
        return self.eval_runner is not None and not self.eval_runner.done()

    # -- groups ------------------------------------------------------------------------

    async def _keep_filled(self) -> None:
        while True:
            self._window.freed.clear()
            await self.add_train_workers()
            await self._window.freed.wait()

    async def add_train_workers(self) -> None:
        """Start as many groups as `_may_start` allows; cancels none."""
        await self._window.fill(self._hooked_run, self._serve_group, self._may_start)

    def _may_start(self) -> bool:
        """Return whether another group may be started now.

        Source: atroposlib 0.4.0, BaseEnv.add_train_workers() and env_manager();
        differs: workers that are running are never cancelled because of this.
        """
        config = self.config
        status = self._session.status
        max_workers = self.max_num_workers
        if self._is_evaluating:
            if config.eval_handling == EvalHandlingEnum.STOP_TRAIN:
                return False
            if config.eval_handling == EvalHandlingEnum.LIMIT_TRAIN:
                max_workers = int(max_workers * config.eval_limit_ratio)
        in_flight = len(self._window.workers)
        # A group that waits for scores or for the API uses no slot of the servers.
        room = min(max_workers - len(self._querying), 2 * max_workers - in_flight)
        batches = config.max_batches_offpolicy
        if batches > 0:
            queue_groups = batches * self.derived_batch_size // config.group_size
            room = min(room, queue_groups - status["queue_size"] - in_flight)
        if config.min_batch_allocation is not None:
            # Even if others fill the queue: the API makes no batch without it.
            room = max(room, groups_to_the_minimum(config, status) - in_flight)
        # No trainer takes groups beyond the last step.
        room = min(room, groups_to_the_end(config, status) - in_flight)
        return bool(room > 0)

    async def _serve_group(self, group: Group) -> None:
        """Call the hook `handle_env` for a group."""
        item_uuid = str(uuid.uuid4())
        began_s = time.monotonic()
        # By its UUID: a reference cycle would keep megabytes until garbage collection.
        group.on_reply = functools.partial(self._free_slot, item_uuid)
        self._querying.add(item_uuid)
        self.running_items[item_uuid] = {"item": group.item, "group": group}
        try:
            await self.handle_env(item_uuid)
            duration_s = time.monotonic() - began_s
            self.task_duration.append(duration_s)
            if group.data is None:
                self.failed_task_duration.append(duration_s)
            else:
                self.succeeded_task_duration.append(duration_s)
        except Exception as error:
            logger.error("a group was lost to an error", exc_info=error)
        finally:
            self._free_slot(item_uuid)
            self.running_items.pop(item_uuid, None)

    async def handle_env(self, item_uuid: str) -> Any:
        """Complete, score and deliver a group; return its data, None if it has none."""
        group: Group = self.running_items[item_uuid]["group"]
        await self._hooked_run.work_on(group)
        await self.cleanup()
        return group.data

    def _free_slot(self, item_uuid: str) -> None:
        """Free the slot of a group that has its replies, or has ended."""
        self._querying.discard(item_uuid)
        self._window.freed.set()
