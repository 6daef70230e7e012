"""Runs a whole training with one command: API, inference server, `serve`, trainer.

    prepare the model, once
    start the API and the inference server, and wait until they answer
    start `serve` and the trainer, and wait until the trainer has finished
    end the trainer and `serve`, then the servers

A server with a URL in the settings runs already, and is neither started nor ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import logging
import os
import time
from pathlib import Path
from typing import Any

from rg_env.launch.plan import Plan
from rg_env.launch.program import Program, last_lines, wait_until_ready
from rg_env.results.sources import METRICS
from rg_env.settings.setting_checks import without_path

logger = logging.getLogger(__name__)

# A program is killed if it does not end in this time; the trainer has no limit.
PROGRAM_ENDS_WITHIN_S = 30.0

PROGRESS_EVERY_S = 30.0

ALARM = "alarms/"
PROGRESS_METRICS = (
    ("score {:.3f}", "train/mean_score"),
    ("groups with variance {:.0%}", "train/groups_with_variance"),
    ("tokens a completion {:.0f}", "train/completion_tokens"),
    ("truncated {:.0%}", "train/truncated"),
)


class TrainingRun:
    """The programs of a run, from the first start to the last end."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._servers = plan.server_programs()
        self._serve = plan.serve_program()
        self._trainer = plan.trainer_program()
        self._running: dict[Program, asyncio.Task[None]] = {}
        self._began_s = time.monotonic()

    async def run(self) -> None:
        """Run until the trainer has finished or a program failed; end all programs."""
        logging_progress = asyncio.create_task(self._log_progress())
        try:
            prepare = self._plan.prepare_program()
            if prepare is not None:
                self._start(prepare)
                await self._running[prepare]
            self._start(*self._servers)
            await self._wait_for_servers()
            self._start(self._serve, self._trainer)
            await self._wait_for(self._running[self._trainer])
        finally:
            await self._end()
            logging_progress.cancel()
            logger.info("%s", self.progress())

    def _start(self, *programs: Program) -> None:
        for program in programs:
            self._running[program] = asyncio.create_task(program.run())

    async def _wait_for_servers(self) -> None:
        urls = [f"{self._plan.api}/info", f"{self._plan.server}/v1/models"]
        logger.info("waiting for %s", " and ".join(map(without_path, urls)))
        ready = asyncio.gather(*map(wait_until_ready, urls))
        try:
            await self._wait_for(ready)
        finally:
            ready.cancel()
            await asyncio.gather(ready, return_exceptions=True)

    async def _wait_for(self, work: asyncio.Future[Any]) -> None:
        """Wait for `work`; if a program fails before, raise its error."""
        running = [task for task in self._running.values() if not task.done()]
        done, _ = await asyncio.wait(
            {work, *running}, return_when=asyncio.FIRST_COMPLETED
        )
        for task in done:
            await task

    async def _end(self) -> None:
        """End all programs; first the trainer and `serve`, which save their work."""
        # The trainer has no limit, because a step may be long.
        serve_ends = self._serve.end(PROGRAM_ENDS_WITHIN_S)
        await asyncio.gather(self._trainer.end(None), serve_ends)
        ends = (each.end(PROGRAM_ENDS_WITHIN_S) for each in self._running)
        await asyncio.gather(*ends)
        # A program that waits for its restart has only a task, and no process.
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def kill_all(self) -> None:
        """Kill all programs."""
        for program in self._running:
            program.kill()

    # -- progress ----------------------------------------------------------------------

    async def _log_progress(self) -> None:
        while True:
            await asyncio.sleep(PROGRESS_EVERY_S)
            logger.info("%s", self.progress())

    def progress(self) -> str:
        """Return a line with the model, the newest metrics and the time of the run."""
        plan = self._plan
        trained = _last_row(plan.folder / "checkpoints/history.jsonl")
        # Each start of `serve` begins a new file.
        paths = sorted(plan.dumps.rglob(f"*{METRICS}"), key=os.path.getmtime)
        metrics = _last_row(paths[-1]) if paths else {}
        step = trained.get("number", metrics.get("step", 0))
        title = plan.settings.model or plan.policy
        parts = [f"{title}: step {step} of {plan.config.total_steps}"]
        if "reward" in trained:
            parts.append(f"reward {trained['reward']:.3f}")
        for template, name in PROGRESS_METRICS:
            if name in metrics:
                parts.append(template.format(metrics[name]))
        for name, count in metrics.items():
            if name.startswith(ALARM) and count:
                parts.append(f"alarm {name.removeprefix(ALARM)} {count}")
        took_s = round(time.monotonic() - self._began_s)
        return ", ".join([*parts, str(datetime.timedelta(seconds=took_s))])


def _last_row(path: Path) -> dict[str, Any]:
    """Return the last row of a JSONL file; {} if there is none."""
    for line in reversed(last_lines(path)):
        with contextlib.suppress(ValueError):  # a line that is being written
            return dict(json.loads(line))
    return {}
