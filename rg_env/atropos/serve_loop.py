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

from atroposlib.envs.base import EvalHandlingEnum

from rg_env.atropos.api_session import ApiSession
from rg_env.atropos.flight_limits import (
    FlightLimits,
    groups_to_start,
    queue_holds_the_end,
)
from rg_env.atropos.groups_in_flight import GroupsInFlight
from rg_env.atropos.hooks import ServeHooks
from rg_env.atropos.lifetime import cancel_and_wait
from rg_env.off_loop import off_loop

logger = logging.getLogger(__name__)

TICK_S = 0.1


class ServeLoop:
    """Feeds a trainer until its last step.

    Args:
        hooks: The environment.
        session: The environment as the API knows it.
        groups: The groups in flight.
        limits: Returns what bounds them now.
    """

    def __init__(
        self,
        hooks: ServeHooks,
        session: ApiSession,
        groups: GroupsInFlight,
        limits: Callable[[], FlightLimits],
    ) -> None:
        self._hooks = hooks
        self._session = session
        self._groups = groups
        self._limits = limits

    async def begin(self) -> None:
        """Set up, and register at the API once its trainer has started."""
        # The framework's percentiles would import it at the first step, for 20 ms.
        await asyncio.gather(self._hooks.setup(), off_loop(import_module, "numpy.ma"))
        await self._hooks.setup_wandb()
        await self._hooks.register_env()
        await self._hooks.get_server_info()

    async def run(self, note_turn: Callable[[float], object]) -> None:
        """Start groups until the run is complete.

        Args:
            note_turn: Told of the seconds that each turn of the loop took.
        """
        await self._hooks.get_status()
        polling = asyncio.create_task(self._keep_status())
        try:
            await self._keep_busy(polling, note_turn)
        finally:
            await cancel_and_wait([polling])

    async def _keep_status(self) -> None:
        """Keep the API's status fresh, so that no refill waits for it.

        Whoever sends a group asks for it too, and that is often enough for a while.
        """
        while True:
            await asyncio.sleep(max(0.0, TICK_S - self._session.status_age_s))
            if self._session.status_age_s >= TICK_S:
                await self._hooks.get_status()

    async def _keep_busy(
        self, polling: asyncio.Task[None], note_turn: Callable[[float], object]
    ) -> None:
        """Keep the inference servers busy until the run is complete."""
        while not polling.done():
            began = time.monotonic()
            weight = self._session.status["env_weight"]
            await self._hooks.server.update_weight(weight)
            await self._hooks.env_step_checks()
            if self._is_complete():
                logger.info("step %d: the run is complete", self._hooks.curr_step)
                return
            await self._hooks.add_train_workers()
            self._groups.cancel_timed_out(self._hooks.config.worker_timeout)
            await self._groups.wait_for_place(TICK_S)
            note_turn(time.monotonic() - began)
        await polling

    def _is_complete(self) -> bool:
        total_steps = self._hooks.config.total_steps
        return queue_holds_the_end(self._limits(), self._session.status, total_steps)

    def may_start(self, *, evaluates: bool) -> bool:
        """Say whether another group may be started now.

        Args:
            evaluates: Whether an evaluation is going on.
        """
        config, limits = self._hooks.config, self._limits()
        if evaluates and config.eval_handling == EvalHandlingEnum.STOP_TRAIN:
            return False
        if evaluates and config.eval_handling == EvalHandlingEnum.LIMIT_TRAIN:
            most = int(limits.max_workers * config.eval_limit_ratio)
            limits = dataclasses.replace(limits, max_workers=most)
        status, in_flight = self._session.status, len(self._groups.workers)
        due = groups_to_start(
            limits, status, self._groups.asking, in_flight, config.total_steps
        )
        return due > 0
