"""The main loop of `serve`: keep the inference servers busy until the last step.

Mends B1 and B3 of docs/host_defects.md: the refill never yields, a fixed wait of 5 s at
the start, a tick before a free place is used.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Callable
from importlib import import_module

from atroposlib.envs.base import BaseEnv, EvalHandlingEnum

from rg_env.atropos.api_session import ApiSession
from rg_env.atropos.flight_limits import (
    FlightLimits,
    groups_to_start,
    queue_holds_the_end,
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


class ServeLoop:
    """Feeds a trainer until its last step.

    Args:
        env: Its hooks are called where the framework calls them.
        session: The environment as the API knows it.
        groups: The groups in flight.
        limits: Returns what bounds them now.
    """

    def __init__(
        self,
        env: BaseEnv,
        session: ApiSession,
        groups: GroupsInFlight,
        limits: Callable[[], FlightLimits],
    ) -> None:
        self._env = env
        self._session = session
        self._groups = groups
        self._limits = limits

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
        try:
            await self._keep_busy(polling)
        finally:
            await cancel_and_wait([polling])

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
        total_steps = self._env.config.total_steps
        return queue_holds_the_end(self._limits(), self._session.status, total_steps)

    def may_start(self, *, evaluates: bool) -> bool:
        """Say whether another group may be started now.

        Args:
            evaluates: Whether an evaluation is going on.
        """
        config, limits = self._env.config, self._limits()
        if evaluates and config.eval_handling == EvalHandlingEnum.STOP_TRAIN:
            return False
        if evaluates and config.eval_handling == EvalHandlingEnum.LIMIT_TRAIN:
            most = int(limits.max_workers * config.eval_limit_ratio)
            limits = dataclasses.replace(limits, max_workers=most)
        status, in_flight = self._session.status, len(self._groups.workers)
        due = groups_to_start(
            limits, status, self._groups.querying, in_flight, config.total_steps
        )
        return due > 0
