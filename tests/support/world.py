"""A world to end in: an API with a trainer, and environments as real processes."""

import asyncio
import contextlib
import subprocess
import sys
import time

from rg_env.demo.stand_in_trainer import WITHOUT_END, trained_api
from rg_env.line_file import read_groups
from tests.support.parts import ENTRY, GUARD_S, NOWHERE, options_of, until
from tests.support.processes import descendants, left_alive
from tests.support.runs import trainer_config
from tests.support.stock_api import running_api

SLOW_END = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
from rg_env import shutdown
shutdown.IN_FLIGHT_GRACE_S, shutdown.END_WITHIN_S = 600.0, 1200.0
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs the entry with an end in order that is never over before a test is."""


class Run:
    """One process of the environment, with what it says in a file."""

    def __init__(self, folder, argv, *, has_slow_end=False):
        folder.mkdir(parents=True, exist_ok=True)
        self._said = folder / "said"
        slow = ["-c", SLOW_END, str(ENTRY.parent)] if has_slow_end else []
        # A pipe that nobody reads would fill and hold it up.
        with self._said.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *slow, str(ENTRY), *argv],
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.pid = self._process.pid

    @property
    def said(self):
        return self._said.read_text()

    async def end(self, *signals):
        """Send signals, each when the one before has been heard, and wait for the end.

        Returns:
            The exit status, the seconds it took, and the processes it left behind.
        """
        began = time.monotonic()
        started = descendants(self.pid)
        for i, number in enumerate(signals):
            if i:
                await until(lambda: "; a second signal" in self.said, "it hears")
            self._process.send_signal(number)
        await until(lambda: self._process.poll() is not None, f"{self.pid} ends")
        seconds = time.monotonic() - began
        left = await asyncio.to_thread(left_alive, started)
        return self._process.returncode, seconds, left

    def kill(self):
        self._process.kill()
        self._process.wait(GUARD_S)


class World:
    """Environments, which do not outlive it, and the newest API with a trainer."""

    def __init__(self, folder):
        self.folder, self.api = folder, NOWHERE
        self.runs = []

    @contextlib.asynccontextmanager
    async def with_api(self, **trainer):
        config = trainer_config(steps=WITHOUT_END, **trainer)
        async with trained_api(config, api=running_api()) as (self.api, _):
            yield

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        for run in self.runs:
            run.kill()

    def argv(self, server_url, **changes):
        settings = {
            "rollout_server_url": self.api,
            "total_steps": 10**6,
            "dump_rollouts": "true",
            "rollout_save_score_threshold": 0.0,
            "data_dumps_dir": "dumps",
            "tasks": "gcd,chain_sum",
        }
        return ["serve", *options_of(server_url, **(settings | changes))]

    def start(self, server_url, name="env", *, has_slow_end=False, **changes):
        settings = {
            "data_dumps_dir": self.folder / "dumps",
            "min_batch_allocation": 0.1,
            "max_batches_offpolicy": 0,
        }
        argv = self.argv(server_url, **(settings | changes))
        run = Run(self.folder / name, argv, has_slow_end=has_slow_end)
        self.runs.append(run)
        return run

    def checkpoints(self):
        found = self.folder.rglob("step-*.json")
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def dumped(self, kind="rollouts"):
        paths = self.folder.glob(f"dumps/**/reasoning_gym_environment_{kind}_*.jsonl")
        return [group for path in paths for group in read_groups(path)]
