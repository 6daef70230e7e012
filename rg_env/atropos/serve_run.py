"""`serve`: register at the API; keep the inference servers busy until the last step.

Mends B1, B3, B5, B11, B20 and B26 of docs/host_defects.md: the framework starts groups
without yielding, waits for 5 s at the start and for a tick before it uses a free slot,
misses steps, loses the error of an evaluation, takes the API's step for the trainer's,
and does not say who blocks a batch by an unfilled minimum allocation.
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
    """Return how many groups the queue lacks until it holds the end of the run.

    That is one batch past the last step, as the framework counts: a trainer that reads
    a batch ahead would wait for it for ever. The API's step runs ahead of the trainer,
    so the content of its queue decides.
    """
    steps = config.total_steps + 1 - status["current_step"]
    groups = math.ceil(steps * config.batch_size / config.group_size)
    return int(groups - status["queue_size"])


class Serving(Hooks):
    """The hooks of `serve`, which feeds a trainer until its last step."""

    _hooked_run: Run  # its parts call replaced hooks
    _window: Window
    _session: ApiSession
    _checkpoints: Checkpoints
    _querying: set[str]  # groups that a server is generating completions for
    eval_runner: asyncio.Task[Any] | None
    items_sent_this_step: int
    running_items: dict[str, Any]

    async def _serve(self) -> None:
        """Keep the inference servers busy until the run is complete.

        A turn waits for no item: groups are started beside it.
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
                # Before the end is noticed: the last step may ask for a checkpoint too.
                await self.env_step_checks()
                if groups_to_the_end(config, session.status) <= 0:
                    # The API may have counted a step more than the trainer took.
                    logger.info("the run of %d steps is complete", config.total_steps)
                    break
                if time.monotonic() - summary_s >= SUMMARY_EVERY_S:
                    summary_s = time.monotonic()
                    await self.metrics.log_summary()
                self._window.freed.set()  # as far as the status tells
                await asyncio.wait({filling}, timeout=TICK_S)
                await self.get_status()
            else:
                await filling  # which ends only by an error
        finally:
            await cancel_and_wait([filling])
        # The groups since the last step that was seen to pass are not logged yet.
        await self._log_if_enough_was_sent()

    async def _end_groups(self) -> None:
        """End groups in flight after a short grace, and evaluations at once."""
        evaluations = cancel_and_wait([self.eval_runner, *self.eval_workers])
        workers = cancel_and_wait(self._window.workers, IN_FLIGHT_GRACE_S)
        await asyncio.gather(evaluations, workers)

    # -- the trainer and its API -------------------------------------------------------

    async def setup_wandb(self) -> None:
        """Start W&B with the trainer's project and group once there is a trainer."""
        if self.config.use_wandb:
            (
                self.wandb_group,
                self.wandb_project,
            ) = await self._session.wandb_group_and_project()
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
        # The keys of W&B begin with it: later registrations do not change it.
        self.wandb_prepend = reply["wandb_name"]
        number = self._session.env_id
        start_checks.log_shard(number, config.shard_index, config.num_shards)
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
        """Take over the trainer's batch size and limit of length."""
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
        """Read the API's status; register again where it has forgotten us."""
        while not await self._session.renew_status():
            logger.warning("the API no longer knows this environment")
            await self._join()

    async def _renew_if_due(self) -> None:
        """Register again where others may take this environment for a killed one."""
        config = self.config
        try:
            is_due = await self._session.check_registrations(config.batch_size)
        except ApiError:  # which is said elsewhere
            return
        if is_due:
            logger.info("registering again, so that nobody takes this for a killed one")
            await self._join()

    # -- steps -------------------------------------------------------------------------

    async def env_step_checks(self) -> None:
        """Evaluate, save and log when the step that asks for it is passed."""
        now = self._session.status["current_step"]
        if now == self.curr_step:
            return
        if crosses_multiple(self.config.steps_per_eval, self.curr_step, now):
            self._start_evaluation()
        self._checkpoints.take_step(self.curr_step, now)
        self.curr_step = now
        await self._log_if_enough_was_sent()

    async def _log_if_enough_was_sent(self) -> None:
        if self.items_sent_this_step >= self.config.min_items_sent_before_logging:
            self.items_sent_this_step = 0
            await self.wandb_log({})

    def _start_evaluation(self) -> None:
        """Evaluate beside the training, unless the last evaluation still runs."""

        async def evaluate() -> None:
            try:
                await self._evaluation.make_items()
                await self.evaluate()
            except Exception as error:
                logger.error("an evaluation failed", exc_info=error)

        if self._evaluates:
            logger.warning("the previous evaluation still runs; this one is skipped")
        else:
            self.eval_runner = asyncio.create_task(evaluate())

    @property
    def _evaluates(self) -> bool:
        return self.eval_runner is not None and not self.eval_runner.done()

    # -- groups ------------------------------------------------------------------------

    async def _keep_filled(self) -> None:
        while True:
            self._window.freed.clear()
            await self.add_train_workers()
            await self._window.freed.wait()

    async def add_train_workers(self) -> None:
        """Start groups until as many are in flight as may be; cancels none."""
        await self._window.fill(self._hooked_run, self._serve_group, self._may_start)

    def _may_start(self) -> bool:
        """Say whether another group may be started now.

        Source: atroposlib 0.4.0, BaseEnv.add_train_workers() and env_manager();
        differs: workers that are running are never cancelled because of this.
        """
        config = self.config
        status = self._session.status
        most = self.max_num_workers
        if self._evaluates and config.eval_handling == EvalHandlingEnum.STOP_TRAIN:
            return False
        if self._evaluates and config.eval_handling == EvalHandlingEnum.LIMIT_TRAIN:
            most = int(most * config.eval_limit_ratio)
        size = config.group_size
        batches = config.max_batches_offpolicy
        # Those that wait for scoring or the API leave the servers' places to others.
        in_flight = len(self._window.workers)
        room = min(most - len(self._querying), 2 * most - in_flight)
        if batches > 0:
            queue_groups = batches * self.derived_batch_size // size
            room = min(room, queue_groups - status["queue_size"] - in_flight)
        if config.min_batch_allocation is not None:
            # It goes on while others fill the queue: the API makes no batch without it,
            # and allots one in packs of the largest group size of any environment.
            pack = status["max_group_size"]
            share = config.min_batch_allocation * config.batch_size
            wanted = (math.ceil(share * batches / pack) + pack // size) * pack
            missing = math.ceil((wanted - status["self_queue_size"] * size) / size)
            room = max(room, missing - in_flight)
        # No trainer would fetch what is beyond the last step.
        room = min(room, groups_to_the_end(config, status) - in_flight)
        return bool(room > 0)

    async def _serve_group(self, group: Group) -> None:
        """Have the hook `handle_env` work on a group."""
        item_uuid = str(uuid.uuid4())
        began_s = time.monotonic()
        # By its id: a cycle would keep megabytes until the next collection.
        group.on_reply = functools.partial(self._free_place, item_uuid)
        self._querying.add(item_uuid)
        self.running_items[item_uuid] = {"item": group.item, "group": group}
        try:
            await self.handle_env(item_uuid)
            kind = "failed" if group.data is None else "succeeded"
            for name in ("task_duration", f"{kind}_task_duration"):
                getattr(self, name).append(time.monotonic() - began_s)
        except Exception as error:
            logger.error("a group was lost to an error", exc_info=error)
        finally:
            self._free_place(item_uuid)
            self.running_items.pop(item_uuid, None)

    async def handle_env(self, item_uuid: str) -> Any:
        """Work on a group from start to end; return its data, if there are any."""
        group: Group = self.running_items[item_uuid]["group"]
        await self._hooked_run.work_on(group)
        await self.cleanup()
        return group.data

    def _free_place(self, item_uuid: str) -> None:
        """Free the place of a group that has its replies, or has ended."""
        if item_uuid in self._querying:
            self._querying.remove(item_uuid)
            self._window.freed.set()
