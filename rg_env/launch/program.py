"""A program of a training run: it is started, watched, restarted and ended."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import aiohttp

from rg_env.errors import EXIT_REFUSED, RunError
from rg_env.settings.setting_checks import without_path
from rg_env.workers.sandbox import syscalls

logger = logging.getLogger(__name__)

# The readiness probe of a server.
PROBE_EVERY_S = 0.5
PROBE_TIMEOUT_S = 5.0

# The first back-off of a restart; it doubles with each.
RESTART_FIRST_PAUSE_S = 1.0

# A program that dies more often within this time ends the run.
MAX_RESTARTS = 5
RESTARTS_WITHIN_S = 600.0

LOG_END_BYTES = 1 << 16


def last_lines(log: Path, start: int = 0) -> list[str]:
    """Return the last non-empty lines of a file after byte `start`."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(start, file.seek(0, os.SEEK_END) - LOG_END_BYTES))
        lines = file.read().decode(errors="replace").split("\n")
        return [line for line in lines if line.strip()]
    return []


@dataclasses.dataclass(eq=False)
class Program:
    """A program of the run, in a process group of its own.

    Attributes:
        name: The name in messages, and of the log.
        argv: The command line.
        folder: The folder of the log.
        variables: Additional environment variables.
        may_finish: Whether the program is done when it ends with status 0.
    """

    name: str
    argv: Sequence[str]
    folder: Path
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    may_finish: bool = False
    _is_ending: bool = False
    _process: asyncio.subprocess.Process | None = None
    _log_start: int = 0

    def __post_init__(self) -> None:
        self.log = self.folder / f"{self.name}.log"

    async def run(self) -> None:
        """Run the program until it finishes or is ended; restart it if it dies.

        Raises:
            RunError: It refused to start, or died too often.
        """
        deaths_s: list[float] = []
        while True:
            status = await self._run_once()
            if self._is_ending or (status == 0 and self.may_finish):
                return
            reason = self._why_ended(status)
            now_s = time.monotonic()
            recent_s = [t for t in deaths_s if now_s - t < RESTARTS_WITHIN_S]
            deaths_s = [*recent_s, now_s]
            # If it refused to start, a restart would not help.
            if status == EXIT_REFUSED or len(recent_s) == MAX_RESTARTS:
                raise RunError(
                    f"{self.name} has ended ({reason}) and is not started again; its"
                    f" log is {self.log}"
                )
            pause_s = RESTART_FIRST_PAUSE_S * 2 ** len(recent_s)
            text = "%s has ended (%s); starting it again in %.0f s"
            logger.warning(text, self.name, reason, pause_s)
            await asyncio.sleep(pause_s)

    def _why_ended(self, status: int) -> str:
        """Return the exit status or the signal, and the last line of the log."""
        lines = last_lines(self.log, self._log_start) or ["its log is empty"]
        how = f"status {status}" if status >= 0 else signal.Signals(-status).name
        return f"{how}: {lines[-1].removeprefix('error: ')}"

    async def _run_once(self) -> int:
        """Run the program once, and return its exit status."""
        logger.info("starting %s, log %s", self.name, self.log)
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = await asyncio.create_subprocess_exec(
                *self.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Unbuffered, so that the log is complete if the program dies.
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.variables},
                # Ctrl-C reaches only this process, which ends the programs in order.
                start_new_session=True,
                preexec_fn=syscalls.end_with_parent,
            )
        try:
            return await self._process.wait()
        finally:
            self.kill()  # its child processes may still run

    async def end(self, grace_s: float | None) -> None:
        """Terminate the program; kill it after `grace_s`, if that is not None."""
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
        """Kill all processes of the program's group."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


async def wait_until_ready(url: str) -> None:
    """Return once a URL answers with status 200."""
    timeout = aiohttp.ClientTimeout(PROBE_TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError):
                async with session.get(url) as reply:
                    if reply.status == 200:
                        logger.info("%s answers", without_path(url))
                        return
            await asyncio.sleep(PROBE_EVERY_S)
