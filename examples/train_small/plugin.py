"""The commands of this project's environment, as processes of its own Python."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from examples.vllm_on_cpu import end_with_us
from rg_env.errors import RunFailed
from rg_env.simulation.child_process import PROJECT, read_log_end

ENTRY = PROJECT / "reasoning_gym_environment.py"
GOLD = PROJECT / "examples" / "train_small" / "gold_conversations.py"

START_WITHIN_S = 120.0
END_WITHIN_S = 30.0
LOOK_EVERY_S = 0.1


class PluginFailed(RunFailed):
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
                preexec_fn=end_with_us,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )

    def check(self) -> None:
        """Raise `PluginFailed` if it has ended."""
        if self._process.poll() is not None:
            raise PluginFailed(
                f"{self._name} ended with status {self._process.returncode};"
                f" the end of {self._log}:\n{read_log_end(self._log)}"
            )

    def wait(self) -> None:
        """Wait for its end.

        Raises:
            PluginFailed: It ended with another status than 0.
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


class Plugin:
    """Starts commands.

    Args:
        python: Of the environment that this project is installed in.
    """

    def __init__(self, python: Path) -> None:
        self._python = str(python)

    @contextlib.contextmanager
    def running(self, log: Path, *argv: object) -> Iterator[PluginProcess]:
        """Run a command of reasoning_gym_environment.py while the context lasts."""
        process = self._start(log, ENTRY, *argv)
        try:
            yield process
        finally:
            process.stop()

    @contextlib.contextmanager
    def running_api(self, log: Path, port: int) -> Iterator[str]:
        """Run the Atropos API while the context lasts.

        Yields:
            Its URL.

        Raises:
            PluginFailed: It ended, or does not answer.
        """
        url = f"http://127.0.0.1:{port}"
        argv = ("run-api", "--host", "127.0.0.1", "--port", port)
        with self.running(log, *argv) as api:
            deadline = time.monotonic() + START_WITHIN_S
            while not _answers(url):
                api.check()
                if time.monotonic() > deadline:
                    raise PluginFailed(f"the Atropos API does not answer; see {log}")
                time.sleep(LOOK_EVERY_S)
            yield url

    def run(self, log: Path, *argv: object) -> None:
        """Run a command of reasoning_gym_environment.py to its end.

        Raises:
            PluginFailed: It ended with another status than 0.
        """
        with self.running(log, *argv) as process:
            process.wait()

    def write_gold(self, log: Path, settings: Path, count: int, output: Path) -> None:
        """Write conversations with right answers.

        Raises:
            PluginFailed: It ended with another status than 0.
        """
        unfinished = output.with_suffix(".part")
        process = self._start(log, GOLD, settings, count, unfinished)
        try:
            process.wait()
        finally:
            process.stop()
        unfinished.replace(output)

    def _start(self, log: Path, *argv: object) -> PluginProcess:
        return PluginProcess([self._python, *map(str, argv)], log)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - of this machine
            return True
    except OSError:
        return False
