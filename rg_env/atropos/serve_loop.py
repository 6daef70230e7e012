"""`serve`: register at the API; keep the inference servers busy until the last step.

Mends B1, B3, B5, B11, B20 and B26 of docs/host_defects.md: the framework starts groups
without yielding, waits for 5 s at the start and for a tick before it uses a free slot,
misses steps, loses the error of an evaluation, takes the API's step for the trainer's,
and does not say who blocks a batch by a minimum allocation that nobody fills.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from atroposlib.envs.base import BaseEnv, EvalHandlingEnum

from rg_env.atropos import start_checks
from rg_env.atropos.api import ApiError
from rg_env.atropos.checkpoints import passed
from rg_env.ending import cancel_and_wait
from rg_env.errors import SettingError
from rg_env.off_loop import off_loop

logger = logging.getLogger(__name__)

TICK_S = 0.1


# -- how many groups may be in flight --------------------------------------------------


def groups_to_the_end(config: Any, status: Mapping[str, int]) -> int:
    """Return how many groups the queue lacks until it holds the end of the run.

    That is one batch past the last step, as the framework counts: a trainer that reads
    a batch ahead would wait for it for ever. The API's step runs ahead of the trainer,
    so the content of its queue decides.
    """
    steps = config.total_steps + 1 - status["current_step"]
    groups = math.ceil(steps * config.batch_size / config.group_size)
    return int(groups - status["queue_size"])


def groups_to_start(
    config: Any,
    status: Mapping[str, int],
    most: int,
    own_batch_size: int,
    querying: int,
    in_flight: int,
) -> int:
    """Return how many groups may be started now, at least 0.

    Args:
        config: The settings; no groups are started beyond `total_steps`, because no
            trainer would fetch them.
        status: The API's newest status.
        most: Groups in flight that the settings allow.
        own_batch_size: The part of a batch that this environment may fill, in rollouts.
        querying: Groups whose completions an inference server is generating. Only these
            count against `most`, so servers never wait for scoring and sending.
        in_flight: All groups that were started and not sent yet; at most twice `most`.

    Source: atroposlib 0.4.0, BaseEnv.add_train_workers() and env_manager(); differs:
    workers that are running are never cancelled because of a number computed here.
    """
    size, batches = config.group_size, config.max_batches_offpolicy
    room = min(most - querying, 2 * most - in_flight)
    if batches > 0:
        queue_groups = batches * own_batch_size // size
        room = min(room, queue_groups - status["queue_size"] - in_flight)
    if config.min_batch_allocation is not None:
        # It goes on while others fill the queue: the API makes no batch without it, and
        # allots a batch in packs of the largest group size of any environment.
        pack = status["max_group_size"]
        share = config.min_batch_allocation * config.batch_size
        wanted = (math.ceil(share * batches / pack) + pack // size) * pack
        missing = math.ceil((wanted - status["self_queue_size"] * size) / size)
        room = max(room, max(0, missing) - in_flight)
    return max(0, min(room, groups_to_the_end(config, status) - in_flight))


class Serving(BaseEnv):
    """The hooks of `serve`, which feeds a trainer until its last step."""

    _filling: asyncio.Task[None] | None = None
    eval_runner: asyncio.Task[Any] | None
    items_sent_this_step: int

    async def _serve(self) -> None:
        # The framework's percentiles would import it at the first step, for 20 ms.
        await asyncio.gather(self.setup(), off_loop(import_module, "numpy.ma"))
        await self.setup_wandb()
        await self.register_env()
        await self.get_server_info()
        self._checkpoints.begin()
        await self.get_status()
        polling = asyncio.create_task(self._keep_status())
        try:
            await self._keep_busy(polling)
        finally:
            await cancel_and_wait([polling, self._filling])
        # What came since the last step that was seen to pass is not logged yet.
        await self._log_if_enough_was_sent()

    # -- the trainer and its API -------------------------------------------------------

    async def setup_wandb(self) -> None:
        """Start W&B with the trainer's project and group once there is a trainer."""
        if self.config.use_wandb:
            self.wandb_group, self.wandb_project = await self._session.wandb_place()
        await self._start_wandb(self.config.wandb_name)

    async def register_env(self) -> None:
        """Register at the API, and take over what it says of the run.

        The first registration loads the checkpoint, unless the run is at step 0.

        Raises:
            SettingError: Neither the settings nor the trainer say how long the run is.
        """
        config = self.config
        is_first = self._session.env_id is None
        reply = await self._session.register(config.wandb_name or self.name, config)
        if is_first:
            # Checkpoints are named after it: later registrations do not change it.
            self.wandb_prepend = reply["wandb_name"]
            number = self._session.env_id
            start_checks.say_shard(number, config.shard_index, config.num_shards)
        self.curr_step = reply["starting_step"]
        self.checkpoint_dir = reply["checkpoint_dir"]
        self.checkpoint_interval = reply["checkpoint_interval"]
        if config.total_steps == -1:
            config.total_steps = reply["num_steps"]
        if config.total_steps == -1:
            raise SettingError(
                "env.total_steps: -1 takes the trainer's number of steps, which has"
                " none either; set one of the two"
            )
        if is_first:
            self._checkpoints.beside_dumps = self.checkpoint_interval <= 0
        if is_first and self.curr_step > 0:
            self.load_checkpoint()
        elif is_first:
            logger.info("the run is at step 0: the stream begins with its first item")

    async def get_server_info(self) -> None:
        """Take over the trainer's batch size and limit of length."""
        config = self.config
        batch_size, max_token_len = await self._session.trainer_limits()
        if batch_size != -1:
            config.batch_size = batch_size
        if max_token_len != -1:
            self.max_token_len = max_token_len
        if self.max_token_len <= 0:
            logger.warning(
                "the trainer sets no limit of length: groups of any length are sent"
            )
        start_checks.check_batch(config.batch_size, config.group_size)
        self._requests.check_limit(self.limit_tokens, self.max_token_len)

    async def get_status(self) -> None:
        """Read the API's status; register again where it has forgotten us."""
        while not await self._session.renew_status():
            logger.warning("the API no longer knows this environment")
            await self.register_env()
            await self.get_server_info()
        await self.server.update_weight(self._session.status["env_weight"])

    # -- the loop ----------------------------------------------------------------------

    async def _keep_status(self) -> None:
        """Refresh the API's status, so that starting groups does not wait for it.

        Sending a group also refreshes it, so this pauses after each group that is sent.
        """
        while True:
            await asyncio.sleep(max(0.0, TICK_S - self._session.status_age_s))
            if self._session.status_age_s >= TICK_S:
                await self.get_status()
            await self._renew_if_due()

    async def _renew_if_due(self) -> None:
        """Register again where others may take this environment for a killed one."""
        config = self.config
        try:
            is_due = await self._session.may_be_ended(config.batch_size)
        except ApiError:  # which is said elsewhere
            return
        if is_due:
            logger.info("registering again, so that nobody takes this for a killed one")
            await self.register_env()
            await self.get_server_info()

    async def _keep_busy(self, polling: asyncio.Task[None]) -> None:
        """Keep the inference servers busy until the run is complete.

        A turn waits for no item: the next groups are started beside it.
        """
        while not polling.done():
            began = time.monotonic()
            weight = self._session.status["env_weight"]
            await self.server.update_weight(weight)
            # Before the end is noticed: the last step may ask for a checkpoint too.
            await self.env_step_checks()
            config = self.config
            if groups_to_the_end(config, self._session.status) <= 0:
                # The API may have counted a step more than the trainer took.
                logger.info("the run of %d steps is complete", config.total_steps)
                return
            if self._filling is None or self._filling.done():
                if self._filling is not None:
                    self._filling.result()  # or its error
                self._filling = asyncio.create_task(self.add_train_workers())
            self._groups.cancel_timed_out(config.worker_timeout)
            await self._groups.flight.wait_for_place(TICK_S)
            self.mainloop_timings.append(time.monotonic() - began)
        # It ends only by an error, which is raised here.
        await polling

    # -- steps -------------------------------------------------------------------------

    async def env_step_checks(self) -> None:
        """Evaluate, save and log when the step that asks for it is passed."""
        now = self._session.status["current_step"]
        if now == self.curr_step:
            return
        if passed(self.config.steps_per_eval, self.curr_step, now):
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
                await self.run_evaluation()
            except Exception as error:
                logger.error("an evaluation failed", exc_info=error)

        if self._evaluates:
            logger.warning("the previous evaluation still runs; this one is skipped")
        else:
            self.eval_runner = asyncio.create_task(evaluate())

    @property
    def _evaluates(self) -> bool:
        return self.eval_runner is not None and not self.eval_runner.done()

    # -- new groups --------------------------------------------------------------------

    async def add_train_workers(self) -> None:
        """Start groups until as many are in flight as may be; cancels none."""
        groups = self._groups
        count = await groups.flight.fill(groups.serve_next, self._may_start, TICK_S)
        self.workers_added_list.append(count)

    def _may_start(self) -> bool:
        """Say whether another group may be started now."""
        config, most = self.config, self.max_num_workers
        if self._evaluates and config.eval_handling == EvalHandlingEnum.STOP_TRAIN:
            return False
        if self._evaluates and config.eval_handling == EvalHandlingEnum.LIMIT_TRAIN:
            most = int(most * config.eval_limit_ratio)
        in_flight, querying = self._groups.flight.workers, self._groups.querying
        own_batch = self.derived_batch_size
        how = (most, own_batch, len(querying), len(in_flight))
        return groups_to_start(config, self._session.status, *how) > 0
