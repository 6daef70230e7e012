"""A program of a training run: started, started again when it dies, ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import aiohttp

from rg_env.errors import EXIT_REFUSED, RunError, counted
from rg_env.workers.sandbox import syscalls

logger = logging.getLogger(__name__)

ASK_EVERY_S, ASK_TIMEOUT_S = 0.5, 5.0
"""Between two requests that find out whether a program is ready, and for one."""

RESTART_FIRST_PAUSE_S = 1.0
"""Before a program that has died is started again; doubled each time."""

MOST_RESTARTS, MOST_FAILED_STARTS, RESTARTS_WITHIN_S = 5, 1, 600.0
"""A program that dies more often in this time ends the run; the second is of a server
that ends by itself before it was ever ready."""

LOG_END_BYTES = 1 << 16

_CAUSE = re.compile(r"(?:^|[ ]|\] )((?:\w+\.)*\w+(?:Error|Exception): .+)", re.M)
"""An exception as vLLM's processes log it."""


class ProgramError(RunError):
    """A program of the run refused to go on, or died too often."""


def end_with_parent() -> None:
    """Have the kernel end this process with its parent; between fork and exec."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)


def last_lines(log: Path, start: int = 0) -> list[str]:
    """Return lines at the end of a file, from a byte of it on, without empty ones."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(start, file.seek(0, os.SEEK_END) - LOG_END_BYTES))
        lines = file.read().decode(errors="replace").split("\n")
        return [line for line in lines if line.strip()]
    return []


class Program:
    """A program of the run, in a process group of its own.

    Args:
        name: What people call it.
        argv: Its command line.
        log: What it prints is appended to this file.
        variables: Of its environment, in addition to ours.
        health_url: Answers with status 200 once it is ready; None if it is ready when
            it runs.
        may_finish: Whether its end with status 0 is the end of its work.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        log: Path,
        *,
        variables: Mapping[str, str] = MappingProxyType({}),
        health_url: str | None = None,
        may_finish: bool = False,
    ) -> None:
        self.name, self.argv, self.log = name, list(argv), log
        self.is_ready = asyncio.Event()
        self._variables, self._health_url = variables, health_url
        self._may_finish, self._is_ending = may_finish, False
        self._process: asyncio.subprocess.Process | None = None
        self._deaths: list[float] = []
        self._log_start = 0

    async def run(self) -> None:
        """Run it until it has finished or was ended, starting it again when it dies.

        Raises:
            ProgramError: It refused to start (status 2), or died too often.
        """
        while True:
            status = await self._run_once()
            if self._is_ending or (status == 0 and self._may_finish):
                return
            how = f"status {status}" if status >= 0 else signal.Signals(-status).name
            reason = self._reason()
            if status == EXIT_REFUSED:  # trying again would not help
                raise ProgramError(f"{self.name} has ended: {reason} (log: {self.log})")
            now = time.monotonic()
            recent = [t for t in self._deaths if now - t < RESTARTS_WITHIN_S]
            self._deaths = [*recent, now]
            is_start = status > 0 and not self.is_ready.is_set()
            most = MOST_FAILED_STARTS if is_start else MOST_RESTARTS
            if len(self._deaths) > most:
                raise ProgramError(
                    f"{self.name} has ended {counted(len(self._deaths), 'time')} in"
                    f" {RESTARTS_WITHIN_S / 60:.0f} minutes, at last with"
                    f" {how} ({reason}); its log is {self.log}"
                )
            pause_s = RESTART_FIRST_PAUSE_S * 2 ** len(recent)
            logger.warning(
                "%s has ended (%s: %s); starting it again in %.0f s",
                *(self.name, how, reason, pause_s),
            )
            await asyncio.sleep(pause_s)

    async def _run_once(self) -> int:
        """Run it from a start to its end; return its exit status."""
        logger.info("starting %s, log %s", self.name, self.log)
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = await asyncio.create_subprocess_exec(
                *self.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # When it dies, its log has to hold its last words.
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self._variables},
                # Ctrl-C at the terminal is for us; we end it when its turn comes.
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        waiting = asyncio.create_task(self._wait_until_ready())
        try:
            return await self._process.wait()
        finally:
            waiting.cancel()
            self.kill()  # what it has started and left behind

    async def _wait_until_ready(self) -> None:
        if self._health_url is not None:
            await wait_until_well(self._health_url)
            logger.info("%s is ready", self.name)
        self.is_ready.set()

    def _reason(self) -> str:
        """Return why it has ended: its own sentence, or the first exception."""
        lines = last_lines(self.log, self._log_start) or ["no words"]
        cause = _CAUSE.search("\n".join(lines))
        if lines[-1].startswith("error: ") or cause is None:
            return lines[-1].removeprefix("error: ")
        return cause[1]

    async def end(self, grace_s: float | None) -> None:
        """Ask it to end, and wait; force it when the time is over, if there is one."""
        self._is_ending = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), grace_s)
        self.kill()
        await process.wait()

    def kill(self) -> None:
        """End all processes of its group at once."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


async def wait_until_well(url: str) -> None:
    """Return once a URL answers with status 200."""
    timeout = aiohttp.ClientTimeout(ASK_TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError):
                async with session.get(url) as reply:
                    if reply.status == 200:
                        return
            await asyncio.sleep(ASK_EVERY_S)
