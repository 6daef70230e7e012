"""The main loop of `serve`: keep the inference servers busy until the last step.

Mends B1, B3, B5 and B26 of docs/host_defects.md: the refill never yields, a fixed wait
of 5 s at the start, a tick before a free place is used, steps that are missed, a
minimum allocation that nobody fills.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from importlib import import_module

from atroposlib.envs.base import BaseEnv, EvalHandlingEnum

from rg_env import patience
from rg_env.atropos.api_client import ApiDownError, ApiRefusedError
from rg_env.atropos.api_session import ApiSession
from rg_env.atropos.flight_limits import (
    FlightLimits,
    groups_to_start,
    groups_to_the_end,
)
from rg_env.atropos.groups_in_flight import GroupsInFlight
from rg_env.atropos.lifetime import cancel_and_wait
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


def passed(interval: int, before: int, now: int) -> bool:
    """Say whether a multiple of the interval lies in (before, now]; 0 or less has none.

    An API that was restarted begins anew: its steps pass nothing on their way back.
    """
    return interval > 0 and now // interval > before // interval


class ServeLoop:
    """Feeds a trainer until its last step."""

    def __init__(
        self, env: BaseEnv, session: ApiSession, groups: GroupsInFlight
    ) -> None:
        self._env = env
        self._session = session
        self._groups = groups

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

    async def run(self) -> None:
        """Start groups until the run is complete."""
        await self._env.get_status()
        polling = asyncio.create_task(self._keep_status())
        watching = asyncio.create_task(self._watch_batches())
        try:
            await self._keep_busy(polling)
        finally:
            await cancel_and_wait([polling, watching])

    async def _watch_batches(self) -> None:
        """Say once of a step what keeps the next one from coming, if it is that."""
        said_of = looked_at = -1
        while True:
            await asyncio.sleep(patience.HELD_UP_AFTER_S)
            step = self._session.status["current_step"]
            if step == looked_at and step != said_of and await self._says_who():
                said_of = step
            looked_at = step

    async def _says_who(self) -> bool:
        limits = self._limits()
        share = limits.min_batch_allocation or 0.0
        try:
            waiting, without = await self._session.who_holds_up(
                share, limits.batch_size / limits.group_size
            )
        except (ApiDownError, ApiRefusedError):  # which is said elsewhere
            return False
        if without:
            self._env.metrics.events["batches_held_up"] += 1
            logger.warning(
                "the API makes no batch of the %d groups that wait: of environments %s,"
                " which have no group there, at least one has a minimum allocation;"
                " start it again, or end what is gone: curl -X POST %s/disconnect-env"
                " -H 'Content-Type: application/json' -d '{\"env_id\": %d}'",
                waiting,
                ", ".join(map(str, without)),
                self._session.client.name,
                without[0],
            )
        return bool(without)

    async def _keep_status(self) -> None:
        """Keep the API's status fresh, so that no refill waits for it.

        Whoever sends a group asks for it too, and that is often enough for a while.
        """
        while True:
            await asyncio.sleep(max(0.0, TICK_S - self._session.status_age_s))
            if self._session.status_age_s >= TICK_S:
                await self._env.get_status()

    async def _keep_busy(self, polling: asyncio.Task[None]) -> None:
        """Keep the inference servers busy until the run is complete."""
        while not polling.done():
            began = time.monotonic()
            weight = self._session.status["env_weight"]
            await self._env.server.update_weight(weight)
            await self._env.env_step_checks()
            if self._is_complete():
                # The API may have counted a step more than the trainer took.
                steps = self._env.config.total_steps
                logger.info("the run of %d steps is complete", steps)
                return
            await self._env.add_train_workers()
            self._groups.cancel_timed_out(self._env.config.worker_timeout)
            await self._groups.wait_for_place(TICK_S)
            self._env.mainloop_timings.append(time.monotonic() - began)
            for name in FRAMEWORK_LISTS:
                del getattr(self._env, name)[:-MAX_FRAMEWORK_VALUES]
        await polling

    def _is_complete(self) -> bool:
        """Say whether the batches made and queued go past the run's last step."""
        total_steps = self._env.config.total_steps
        return groups_to_the_end(self._limits(), self._session.status, total_steps) <= 0

    @property
    def evaluates(self) -> bool:
        """Whether an evaluation is going on."""
        runner = self._env.eval_runner
        return runner is not None and not runner.done()

    async def fill(self) -> int:
        """Start groups until as many are in flight as may be; return how many."""
        added = 0
        while self.may_start(evaluates=self.evaluates):
            group = await self._groups.next_group()
            if group is None:
                break
            self._groups.start(group, self._env.handle_env)
            added += 1
            # Replies often come in bursts: what else is due does not wait for them all.
            await asyncio.sleep(0)
        return added

    def may_start(self, *, evaluates: bool) -> bool:
        """Say whether another group may be started now, or beside an evaluation."""
        config, limits = self._env.config, self._limits()
        if evaluates and config.eval_handling == EvalHandlingEnum.STOP_TRAIN:
            return False
        if evaluates and config.eval_handling == EvalHandlingEnum.LIMIT_TRAIN:
            most = int(limits.max_workers * config.eval_limit_ratio)
            limits = dataclasses.replace(limits, max_workers=most)
        status, in_flight = self._session.status, len(self._groups.workers)
        querying = len(self._groups.querying)
        due = groups_to_start(limits, status, querying, in_flight, config.total_steps)
        return due > 0
