"""How far a training run is: read from what its programs write, drawn for people."""

from __future__ import annotations

import contextlib
import datetime
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from rg_env.evaluation.sources import HISTORY, METRICS
from rg_env.launch.launch_plan import Plan
from rg_env.launch.program import Program, last_lines
from rg_env.reports.terminal import NumberTable

LONG_STEP_S = 60.0
"""Without a step before the trainer's last words are shown."""

ALARM, LENGTH = "alarms/", "train/completion_tokens"
SCORED = "train/rollouts_scored"
SHOWN = (
    ("score {:.3f}", "train/mean_score"),
    ("groups with variance {:.0%}", "train/groups_with_variance"),
    ("tokens a completion {:.0f}", LENGTH),
    ("truncated {:.0%}", "train/truncated"),
)


def last_rows(path: Path) -> list[dict[str, Any]]:
    """Return rows at the end of a JSONL file, oldest first; [] if there is no file."""
    rows = []
    for line in last_lines(path):
        with contextlib.suppress(ValueError):  # a line that is being written
            rows.append(json.loads(line))
    return [row for row in rows if isinstance(row, dict)]


def _clock(seconds: float) -> str:
    return str(datetime.timedelta(seconds=round(seconds)))


class RunProgress:
    """What is known of a run: the history of our trainer, and what `serve` writes."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._began_s = self._stepped_s = time.monotonic()
        self._last_step: int | None = None
        self._first: tuple[int, float] | None = None

    def _trained(self) -> dict[str, Any]:
        return (last_rows(self._plan.folder / HISTORY) or [{}])[-1]

    def _newest(self) -> list[dict[str, Any]]:
        """Return the newest lines of metrics, oldest first."""
        # Each start of `serve` begins a file of its own.
        paths = self._plan.dumps.rglob(f"*{METRICS}")
        with contextlib.suppress(OSError):  # one that is removed meanwhile
            newest = max(paths, key=lambda path: path.stat().st_mtime, default=None)
            return last_rows(newest)[-2:] if newest else []
        return []

    def place(self) -> str:
        """Return how far the run is."""
        plan, step = self._plan, self._step()
        total, took_s = plan.config.total_steps, time.monotonic() - self._began_s
        title = plan.settings.model or plan.policy
        place = f"{title}: step {step} of {total}, {_clock(took_s)}"
        first, first_s = self._first or (step, 0.0)
        if step > first:
            step_s = (self._stepped_s - first_s) / (step - first)
            place += f", {_clock(step_s * max(0, total - step))} left"
        return place

    def _step(self) -> int:
        now = (self._newest() or [{}])[-1]
        step = int(self._trained().get("number", now.get("step", 0)))
        if step != self._last_step:
            self._stepped_s = time.monotonic()
            if self._first is None and self._last_step is not None:
                # Before the first step of this start, programs were starting.
                self._first = step, self._stepped_s
            self._last_step = step
        return step

    def numbers(self) -> str:
        """Return the newest numbers of the trainer and of `serve`."""
        trained, newest = self._trained(), self._newest()
        parts = [f"reward {trained['reward']:.3f}"] if "reward" in trained else []
        if newest:
            before, now = newest[0], newest[-1]
            parts += [form.format(now[name]) for form, name in SHOWN if name in now]
            if now is not before and SCORED in before and LENGTH in now:
                ends = [datetime.datetime.fromisoformat(n["time"]) for n in newest]
                took_s = max((ends[1] - ends[0]).total_seconds(), 1)
                tokens = (now[SCORED] - before[SCORED]) * now[LENGTH]
                parts.append(f"{tokens / took_s:,.0f} tokens/s")
            rang = {n: now[n] for n in now if n.startswith(ALARM) and now[n]}
            alarms = [f"{n.removeprefix(ALARM)} {count}" for n, count in rang.items()]
            parts.append(f"alarms: {', '.join(alarms) or 'none'}")
        if not self._step() or time.monotonic() - self._stepped_s > LONG_STEP_S:
            parts.append("no new step" if self._step() else "no step yet")
            words = last_lines(self._plan.folder / "trainer.log")[-1:]
            parts += [f"trainer: {line}" for line in words]
        return ", ".join(parts)

    def view(self, programs: Sequence[Program]) -> RenderableType:
        """Return what a terminal shows."""
        names, numbers = ("program", "state"), ("for", "restarts")
        table = NumberTable(names, numbers, box=None, pad_edge=False)
        now = time.monotonic()
        for program in programs:
            took = _clock(now - program.since_s)
            table.add_row(program.name, program.state, took, str(program.restarts))
        lines = (self.place(), self.numbers(), f"logs: {self._plan.folder}", "")
        return Group(*map(Text, lines), table)
