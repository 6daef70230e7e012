"""`serve`: register at the API; keep the inference servers busy until the last step.

Mends B1, B3, B5, B11 and B26 of docs/host_defects.md: the framework starts groups
without yielding, waits for 5 s at the start and for a tick before it uses a free slot,
misses steps, loses the error of an evaluation, and does not say who blocks a batch by a
minimum allocation that nobody fills.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from importlib import import_module

from atroposlib.envs.base import BaseEnv, EvalHandlingEnum

from rg_env.atropos import start_checks
from rg_env.atropos.api import ApiError, ApiSession
from rg_env.atropos.checkpoints import Checkpoints, passed
from rg_env.atropos.flight_limits import (
    FlightLimits,
    groups_to_start,
    groups_to_the_end,
)
from rg_env.atropos.lifetime import cancel_and_wait
from rg_env.atropos.pipeline import Pipeline
from rg_env.errors import SettingError
from rg_env.off_loop import off_loop

logger = logging.getLogger(__name__)

TICK_S = 0.1

FRAMEWORK_LISTS = (
    "completion_lengths",
    "failed_task_duration",
    "mainloop_timings",
    "succeeded_task_duration",
    "task_duration",
    "task_successful",
    "workers_added_list",
)
"""What the framework collects between two steps, which may be days apart."""

MAX_FRAMEWORK_VALUES = 10_000


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
        await self.begin()
        self._checkpoints.begin()
        await self.run()
        # What came since the last step that was seen to pass is not logged yet.
        await self._log_if_enough_was_sent()

    # -- the trainer and its API -------------------------------------------------------

    def _limits(self) -> FlightLimits:
        env, config = self._env, self._env.config
        return FlightLimits(
            max_workers=env.max_num_workers,
            group_size=config.group_size,
            batch_size=config.batch_size,
            own_batch_size=env.derived_batch_size,
            max_batches_offpolicy=config.max_batches_offpolicy,
            min_batch_allocation=config.min_batch_allocation,
        )

    async def begin(self) -> None:
        """Set up, and register at the API once its trainer has started."""
        # The framework's percentiles would import it at the first step, for 20 ms.
        await asyncio.gather(self._env.setup(), off_loop(import_module, "numpy.ma"))
        await self._env.setup_wandb()
        await self._env.register_env()
        await self._env.get_server_info()

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
            if self._is_complete():
                # The API may have counted a step more than the trainer took.
                steps = self._env.config.total_steps
                logger.info("the run of %d steps is complete", steps)
                return
            if self._filling is None or self._filling.done():
                if self._filling is not None:
                    self._filling.result()  # or its error
                self._filling = asyncio.create_task(self._env.add_train_workers())
            self._groups.cancel_timed_out(self._env.config.worker_timeout)
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

    def _is_complete(self) -> bool:
        """Say whether the batches made and queued go past the run's last step."""
        total_steps = self._env.config.total_steps
        return groups_to_the_end(self._limits(), self._session.status, total_steps) <= 0

    @property
    def evaluates(self) -> bool:
        """Whether an evaluation is going on."""
        runner = self._env.eval_runner
        return runner is not None and not runner.done()

    # -- new groups --------------------------------------------------------------------

    async def fill(self) -> int:
        """Start groups, for a tick at most, while there are places; return how many."""

        def may_begin() -> bool:
            return self.may_start(evaluates=self.evaluates)

        groups = self._groups
        return await groups.flight.fill(groups.serve_next, may_begin, TICK_S)

    def may_start(self, *, evaluates: bool) -> bool:
        """Say whether another group may be started now, or beside an evaluation."""
        config, limits = self._env.config, self._limits()
        if evaluates and config.eval_handling == EvalHandlingEnum.STOP_TRAIN:
            return False
        if evaluates and config.eval_handling == EvalHandlingEnum.LIMIT_TRAIN:
            most = int(limits.max_workers * config.eval_limit_ratio)
            limits = dataclasses.replace(limits, max_workers=most)
        status, in_flight = self._session.status, len(self._groups.flight.workers)
        querying = len(self._groups.querying)
        due = groups_to_start(limits, status, querying, in_flight, config.total_steps)
        return due > 0
