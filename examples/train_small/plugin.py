"""The commands of this project's environment, as processes of its own Python."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rg_env.demo.child_process import read_log_end
from rg_env.errors import RunError
from rg_env.installation import PROJECT
from rg_env.workers.sandbox import syscalls

ENTRY = PROJECT / "reasoning_gym_environment.py"

END_WITHIN_S = 30.0


class PluginError(RunError):
    """A command of the environment ended; the text holds the end of its log."""


class PluginProcess:
    """A command that runs, and does not outlive us.

    Args:
        argv: Of the process.
        log: What it says; written anew.
    """

    def __init__(self, argv: list[str], log: Path) -> None:
        self._name, self._log = " ".join(argv[1:3]), log
        with log.open("wb") as said:
            self._process = subprocess.Popen(
                argv,
                stdout=said,
                stderr=subprocess.STDOUT,
                # Ctrl-C at the terminal is for us, who tell it to end.
                start_new_session=True,
                # And if we are killed it is told by the kernel.
                preexec_fn=syscalls.end_with_parent,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )

    def check(self) -> None:
        """Raise `PluginError` if it has ended."""
        if self._process.poll() is not None:
            raise PluginError(
                f"{self._name} ended with status {self._process.returncode};"
                f" the end of {self._log}:\n{read_log_end(self._log)}"
            )

    def wait(self) -> None:
        """Wait for its end.

        Raises:
            PluginError: It ended with another status than 0.
        """
        if self._process.wait():
            self.check()

    def stop(self) -> None:
        """End it in order, or at once if it does not go."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(END_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()


@dataclass(frozen=True)
class Plugin:
    """Starts commands.

    Attributes:
        python: Of the environment that this project is installed in.
    """

    python: Path

    @contextlib.contextmanager
    def running(
        self, log: Path, *argv: object, program: Path = ENTRY
    ) -> Iterator[PluginProcess]:
        """Run a command of reasoning_gym_environment.py while the context lasts."""
        words = [str(word) for word in (self.python, program, *argv)]
        process = PluginProcess(words, log)
        try:
            yield process
        finally:
            process.stop()

    def run(self, log: Path, *argv: object, program: Path = ENTRY) -> None:
        """Run one to its end.

        Raises:
            PluginError: It ended with another status than 0.
        """
        with self.running(log, *argv, program=program) as process:
            process.wait()
