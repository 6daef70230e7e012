"""A whole training run from one command: API, inference server, `serve`, trainer.

    prepare the model, once
    start the API and the inference server, and wait until they answer
    start `serve` and the trainer, until the trainer has finished
    end the trainer and `serve`, then the servers

What has a URL in the settings is running already, and is neither started nor ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import Iterable
from typing import Any

import aiohttp
from rich.console import Console
from rich.live import Live

from rg_env import ending, patience
from rg_env.launch.launch_plan import Plan
from rg_env.launch.program import DONE, Program, wait_until_well
from rg_env.launch.run_progress import RunProgress
from rg_env.settings.setting_types import without_path

logger = logging.getLogger(__name__)

SHOW_EVERY_S, LINE_EVERY_S, REMIND_EVERY_S = 0.5, 10.0, 60.0
"""A terminal; lines elsewhere, where something has changed, and where nothing has."""


class TrainingRun:
    """The programs of a run, from the first start to the last end."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._progress = plan, RunProgress(plan)
        self._servers = plan.servers()
        self._serve, self._trainer = plan.serve(), plan.trainer()
        self._running: dict[Program, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Run until the trainer has finished; ends everything it has started.

        Raises:
            ProgramError: A program refused to go on, or died too often.
        """
        showing = asyncio.create_task(self._show())
        with ending.at_once(self._kill_all):
            try:
                # Puts the model into the folder that is served, unless it is there.
                if (prepare := self._plan.preparing()) is not None:
                    self._start(prepare)
                    await self._running[prepare]
                self._start(*self._servers)
                await self._wait_for_servers()
                self._start(self._serve, self._trainer)
                await self._while_running(self._running[self._trainer])
            finally:
                await self._end()
                showing.cancel()
                await asyncio.gather(showing, return_exceptions=True)
                logger.info("%s", self._progress.place())
                logger.info("%s", self._progress.numbers())

    def _start(self, *programs: Program) -> None:
        for program in programs:
            logger.info("starting %s, log %s", program.name, program.log)
            self._running[program] = asyncio.create_task(program.run())

    async def _wait_for_servers(self) -> None:
        plan = self._plan
        waits: list[asyncio.Task[Any]]
        waits = [asyncio.create_task(p.is_ready.wait()) for p in self._servers]
        running = {plan.api: "/info"} if not plan.starts_api else {}
        running |= {plan.server: "/v1/models"} if not plan.starts_server else {}
        for url, path in running.items():
            logger.info("waiting for %s", without_path(url))
            waits.append(asyncio.create_task(wait_until_well(url + path)))
        ready = asyncio.gather(*waits)
        try:
            await self._while_running(ready)
        finally:
            ready.cancel()
            await asyncio.gather(ready, return_exceptions=True)

    async def _while_running(self, work: asyncio.Future[Any]) -> None:
        """Wait for something; a program that ends for good before it ends the run."""
        running = [task for task in self._running.values() if not task.done()]
        done, _ = await asyncio.wait(
            {work, *running}, return_when=asyncio.FIRST_COMPLETED
        )
        for task in done:
            await task

    async def _end(self) -> None:
        """End what runs: first the trainer and `serve`, which have work to save."""

        async def end(programs: Iterable[Program]) -> None:
            within_s = patience.PROGRAM_ENDS_WITHIN_S
            # A step of the trainer may be long.
            ends = (p.end(None if p is self._trainer else within_s) for p in programs)
            await asyncio.gather(*ends)

        await end([self._serve, self._trainer])
        await self._say_untrained()
        await end(self._running)
        # What waits to be started again has no process that could be ended.
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _say_untrained(self) -> None:
        """Say how many groups are lost with an API that ends."""
        if not self._plan.starts_api:
            return
        with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError, KeyError):
            timeout = aiohttp.ClientTimeout(patience.LAUNCH_ASK_TIMEOUT_S)
            url = f"{self._plan.api}/status"
            async with aiohttp.ClientSession(timeout=timeout) as s, s.get(url) as reply:
                waiting = (await reply.json())["queue_size"]
            if waiting:
                logger.warning("groups that waited at the API, untrained: %d", waiting)

    def _kill_all(self) -> None:
        for program in self._running:
            program.kill()

    async def _show(self) -> None:
        """Show what happens, on a terminal or in lines, until cancelled."""
        console, progress = Console(), self._progress
        if console.is_terminal:
            # The log stays where it goes, if that is not this terminal.
            moves_log = sys.stderr.isatty()
            with Live(
                console=console, auto_refresh=False, redirect_stderr=moves_log
            ) as view:
                while True:
                    view.update(progress.view([*self._running]), refresh=True)
                    await asyncio.sleep(SHOW_EVERY_S)
        last, last_s = "", 0.0
        while True:
            await asyncio.sleep(LINE_EVERY_S)
            others = [p for p in self._running if p.state not in ("running", DONE)]
            states = [f"{p.name} is {p.state}" for p in others]
            now = "; ".join([progress.numbers(), *states])
            if now != last or time.monotonic() - last_s > REMIND_EVERY_S:
                last, last_s = now, time.monotonic()
                logger.info("%s; %s", progress.place(), now)
