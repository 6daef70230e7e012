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
from rg_env.atropos.api import ApiError, ApiSession
from rg_env.atropos.checkpoints import Checkpoints, passed
from rg_env.atropos.pipeline import Pipeline
from rg_env.ending import cancel_and_wait
from rg_env.errors import SettingError
from rg_env.off_loop import off_loop

logger = logging.getLogger(__name__)

TICK_S = 0.1

FRAMEWORK_LISTS = (
    *("completion_lengths", "failed_task_duration", "mainloop_timings"),
    *("succeeded_task_duration", "task_duration", "task_successful"),
    "workers_added_list",
)
"""What the framework collects between two steps, which may be days apart."""

MAX_FRAMEWORK_VALUES = 10_000


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
    *,
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


class ServeLoop:
    """Feeds a trainer until its last step."""

    def __init__(
        self,
        env: BaseEnv,
        session: ApiSession,
        groups: Pipeline,
        checkpoints: Checkpoints,
    ) -> None:
        self._env = env
        self._session = session
        self._groups = groups
        self._checkpoints = checkpoints
        self._filling: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Run `serve` after its settings have been checked."""
        if self._env.jsonl_writer is not None:
            self._env.jsonl_writer.say_where()
        env = self._env
        # The framework's percentiles would import it at the first step, for 20 ms.
        await asyncio.gather(env.setup(), off_loop(import_module, "numpy.ma"))
        await env.setup_wandb()
        await env.register_env()
        await env.get_server_info()
        self._checkpoints.begin()
        await self.run()
        # What came since the last step that was seen to pass is not logged yet.
        await self._log_if_enough_was_sent()

    # -- the trainer and its API -------------------------------------------------------

    async def register(self) -> None:
        """Register at the API, and take over what it says of the run.

        The first registration loads the checkpoint, unless the run is at step 0.

        Raises:
            SettingError: Neither the settings nor the trainer say how long the run is.
        """
        env, config = self._env, self._env.config
        is_first = self._session.env_id is None
        told = await self._session.register(config.wandb_name or env.name, config)
        if is_first:
            # Checkpoints are named after it: later registrations do not change it.
            env.wandb_prepend = told["wandb_name"]
            number = self._session.env_id
            start_checks.say_shard(number, config.shard_index, config.num_shards)
        env.curr_step = told["starting_step"]
        env.checkpoint_dir = told["checkpoint_dir"]
        env.checkpoint_interval = told["checkpoint_interval"]
        if config.total_steps == -1:
            config.total_steps = told["num_steps"]
        if config.total_steps == -1:
            raise SettingError(
                "env.total_steps: -1 takes the trainer's number of steps, which has"
                " none either; set one of the two"
            )
        if is_first:
            self._checkpoints.beside_dumps = env.checkpoint_interval <= 0
        if is_first and env.curr_step > 0:
            env.load_checkpoint()
        elif is_first:
            logger.info("the run is at step 0: the stream begins with its first item")

    async def take_trainer_limits(self) -> None:
        """Take over the trainer's batch size and limit of length."""
        env, config = self._env, self._env.config
        batch_size, max_token_len = await self._session.trainer_limits()
        if batch_size != -1:
            config.batch_size = batch_size
        if max_token_len != -1:
            env.max_token_len = max_token_len
        if env.max_token_len <= 0:
            logger.warning(
                "the trainer sets no limit of length: groups of any length are sent"
            )
        start_checks.check_batch(config.batch_size, config.group_size)

    async def renew_status(self) -> None:
        """Read the API's status; register again where it has forgotten us."""
        while not await self._session.renew_status():
            logger.warning(
                "the API no longer knows this environment; registering again"
            )
            await self._env.register_env()
            await self._env.get_server_info()
        await self._env.server.update_weight(self._session.status["env_weight"])

    # -- the loop ----------------------------------------------------------------------

    async def run(self) -> None:
        """Start groups until the run is complete."""
        await self._env.get_status()
        polling = asyncio.create_task(self._keep_status())
        try:
            await self._keep_busy(polling)
        finally:
            await cancel_and_wait([polling, self._filling])

    async def _keep_status(self) -> None:
        """Refresh the API's status, so that starting groups does not wait for it.

        Sending a group also refreshes it, so this pauses after each group that is sent.
        """
        while True:
            await asyncio.sleep(max(0.0, TICK_S - self._session.status_age_s))
            if self._session.status_age_s >= TICK_S:
                await self._env.get_status()
            await self._renew_if_due()

    async def _renew_if_due(self) -> None:
        """Register again where others may take this environment for a killed one."""
        config = self._env.config
        try:
            is_due = await self._session.may_be_ended(
                config.batch_size, config.min_batch_allocation or 0.0
            )
        except ApiError:  # which is said elsewhere
            return
        if is_due:
            logger.info("registering again, so that nobody takes this for a killed one")
            await self._env.register_env()
            await self._env.get_server_info()

    async def _keep_busy(self, polling: asyncio.Task[None]) -> None:
        """Keep the inference servers busy until the run is complete.

        A turn waits for no item: the next groups are started beside it.
        """
        while not polling.done():
            began = time.monotonic()
            weight = self._session.status["env_weight"]
            await self._env.server.update_weight(weight)
            # Before the end is noticed: the last step may ask for a checkpoint too.
            await self._env.env_step_checks()
            config = self._env.config
            if groups_to_the_end(config, self._session.status) <= 0:
                # The API may have counted a step more than the trainer took.
                logger.info("the run of %d steps is complete", config.total_steps)
                return
            if self._filling is None or self._filling.done():
                if self._filling is not None:
                    self._filling.result()  # or its error
                self._filling = asyncio.create_task(self._env.add_train_workers())
            self._groups.cancel_timed_out(config.worker_timeout)
            await self._groups.flight.wait_for_place(TICK_S)
            self._env.mainloop_timings.append(time.monotonic() - began)
            for name in FRAMEWORK_LISTS:
                del getattr(self._env, name)[:-MAX_FRAMEWORK_VALUES]
        # It ends only by an error, which is raised here.
        await polling

    # -- steps -------------------------------------------------------------------------

    async def take_step(self) -> None:
        """Evaluate, save and log when the step that asks for it is passed."""
        env, now = self._env, self._session.status["current_step"]
        if now == env.curr_step:
            return
        if passed(env.config.steps_per_eval, env.curr_step, now):
            self.start_evaluation()
        self._checkpoints.take_step(env.curr_step, now)
        env.curr_step = now
        await self._log_if_enough_was_sent()

    async def _log_if_enough_was_sent(self) -> None:
        env = self._env
        if env.items_sent_this_step >= env.config.min_items_sent_before_logging:
            env.items_sent_this_step = 0
            await env.wandb_log({})

    def start_evaluation(self) -> None:
        """Evaluate beside the training, unless the last evaluation still runs."""
        if self.evaluates:
            logger.warning(
                "the previous evaluation is still running; this one is skipped"
            )
            return
        loop = asyncio.get_running_loop()
        self._env.eval_runner = loop.create_task(self._evaluate())

    async def _evaluate(self) -> None:
        """Log its error, if it has one."""
        try:
            await self._env.run_evaluation()
        except Exception as error:
            logger.error("an evaluation failed", exc_info=error)

    @property
    def evaluates(self) -> bool:
        """Whether an evaluation is going on."""
        runner = self._env.eval_runner
        return runner is not None and not runner.done()

    # -- new groups --------------------------------------------------------------------

    async def fill(self) -> int:
        """Start groups, for a tick at most, while there are places; return how many."""
        groups = self._groups
        return await groups.flight.fill(groups.serve_next, self.may_start, TICK_S)

    def may_start(self) -> bool:
        """Say whether another group may be started now."""
        env, config, groups = self._env, self._env.config, self._groups
        most = env.max_num_workers
        if self.evaluates and config.eval_handling == EvalHandlingEnum.STOP_TRAIN:
            return False
        if self.evaluates and config.eval_handling == EvalHandlingEnum.LIMIT_TRAIN:
            most = int(most * config.eval_limit_ratio)
        due = groups_to_start(
            config,
            self._session.status,
            most=most,
            own_batch_size=env.derived_batch_size,
            querying=len(groups.querying),
            in_flight=len(groups.flight.workers),
        )
        return due > 0
