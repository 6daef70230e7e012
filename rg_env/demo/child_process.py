"""Runs programs of this project as child processes.

The first line of a program's output ends with its URL. The kernel ends the programs
with this process, so none is left behind, however this process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator

from rg_env.errors import EXIT_REFUSED, RunError, SettingError
from rg_env.installation import PROJECT
from rg_env.workers.sandbox import syscalls

RUN_API = ("rg_env.cli.console", "run-api")
"""The module and the command of the Atropos API, which takes `--port`."""

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 5.0


class ChildProgram:
    """A program that is started with `python -m`; its log is a temporary file."""

    def __init__(self, module: str, *argv: str) -> None:
        self._module = module
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        paths = filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            # Ctrl-C reaches only this process, which then ends the child.
            start_new_session=True,
            preexec_fn=syscalls.end_with_parent,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )

    def wait_for_url(self) -> str:
        """Return the URL of the program.

        Raises:
            SettingError: It refused to start; the message is its own.
            RunError: It ended or printed no URL; the message has its last log line.
        """
        output = self._process.stdout
        assert output is not None  # noqa: S101 - it is a pipe
        if not select.select([output], [], [], START_TIMEOUT_S)[0]:
            raise self._error(f"printed no URL in {START_TIMEOUT_S:g} s")
        words = output.readline().decode(errors="replace").split()
        if words and words[-1].startswith("http"):
            return words[-1]
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_TIMEOUT_S)
        raise self._error(f"ended with status {self._process.poll()} at its start")

    def _error(self, reason: str) -> Exception:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()
        last = lines[-1] if lines else "its log is empty"
        if self._process.poll() == EXIT_REFUSED:
            return SettingError(last.removeprefix("error: "))
        return RunError(f"{self._module} {reason} ({last})")

    def stop(self) -> None:
        """Terminate the program, or kill it after `STOP_TIMEOUT_S`."""
        process = self._process
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for file in filter(None, (process.stdout, self._log)):
            file.close()


@contextlib.asynccontextmanager
async def running_program(module: str, *argv: str) -> AsyncIterator[str]:
    """Run a program within a context, which has its URL."""
    child = ChildProgram(module, *argv)
    try:
        yield await asyncio.to_thread(child.wait_for_url)
    finally:
        await asyncio.shield(asyncio.to_thread(child.stop))
