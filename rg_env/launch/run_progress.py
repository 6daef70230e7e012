"""How far a training run is: read from what its programs write, drawn for people."""

from __future__ import annotations

import contextlib
import datetime
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from rg_env.evaluation.sources import HISTORY, METRICS
from rg_env.launch.program import Program, last_lines
from rg_env.reports.fitting_table import FittingTable

TAIL_BYTES = 1 << 16
"""In which the last two lines of a file of metrics lie."""

LONG_STEP_S = 60.0
"""Without a step before the trainer's last words are shown."""

ALARM, LENGTH = "alarms/", "train/completion_tokens"
SCORED = "train/rollouts_scored"


def last_rows(path: Path, count: int) -> list[dict[str, Any]]:
    """Return the last rows of a JSONL file, oldest first; [] if there is no file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return []
    rows = []
    # One more, since the last one may be incomplete.
    for line in lines[-count - 1 :]:
        with contextlib.suppress(ValueError):  # a line that is being written
            rows.append(json.loads(line))
    return [row for row in rows if isinstance(row, dict)][-count:]


def _clock(seconds: float) -> str:
    return str(datetime.timedelta(seconds=round(seconds)))


def _time(row: Mapping[str, Any]) -> datetime.datetime:
    return datetime.datetime.fromisoformat(row["time"])


class RunProgress:
    """What is known of a run.

    Args:
        title: The run, for people.
        total_steps: Of the trainer.
        folder: Of the run, with the history of our trainer and the log of any.
        metrics_folder: In or below which `serve` writes its metrics.
    """

    def __init__(
        self, title: str, total_steps: int, folder: Path, metrics_folder: Path
    ) -> None:
        self._title, self._total_steps = title, total_steps
        self._metrics_folder, self._history = metrics_folder, folder / HISTORY
        self._trainer_log = folder / "trainer.log"
        self._began_s = self._stepped_s = time.monotonic()
        self._last_step: int | None = None
        self._first: tuple[int, float] | None = None

    def _newest(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the newest two lines of metrics, the older one first."""
        # Each start of `serve` begins a file of its own.
        found = self._metrics_folder.rglob(f"*{METRICS}")
        with contextlib.suppress(OSError):  # one that is removed meanwhile
            newest = max(found, key=lambda path: path.stat().st_mtime, default=None)
            rows = last_rows(newest, 2) if newest else []
            return (rows[0] if len(rows) > 1 else {}), (rows[-1] if rows else {})
        return {}, {}

    def place(self) -> str:
        """Return how far the run is."""
        step, took_s = self._step(), time.monotonic() - self._began_s
        place = f"{self._title}: step {step} of {self._total_steps}, {_clock(took_s)}"
        first, first_s = self._first or (step, 0.0)
        if step > first:
            step_s = (self._stepped_s - first_s) / (step - first)
            place += f", {_clock(step_s * max(0, self._total_steps - step))} left"
        return place

    def _step(self) -> int:
        (trained,) = last_rows(self._history, 1) or [{}]
        _, now = self._newest()
        step = int(trained.get("number", now.get("step", 0)))
        if step != self._last_step:
            self._stepped_s = time.monotonic()
            if self._first is None and self._last_step is not None:
                # Before the first step of this start, programs were starting.
                self._first = step, self._stepped_s
            self._last_step = step
        return step

    def numbers(self) -> str:
        """Return the newest numbers of the trainer and of `serve`."""
        (trained,) = last_rows(self._history, 1) or [{}]
        before, now = self._newest()
        said = [
            f"{label} {form.format(numbers[name])}"
            for label, form, numbers, name in (
                ("reward", "{:.3f}", trained, "reward"),
                ("score", "{:.3f}", now, "train/mean_score"),
                ("groups with variance", "{:.0%}", now, "train/groups_with_variance"),
                ("tokens a completion", "{:.0f}", now, LENGTH),
                ("truncated", "{:.0%}", now, "train/truncated"),
            )
            if name in numbers
        ]
        if SCORED in before and LENGTH in now:
            took = _time(now) - _time(before)
            tokens = (now[SCORED] - before[SCORED]) * now[LENGTH]
            said.append(f"{tokens / max(took.total_seconds(), 1):,.0f} tokens/s")
        rang = {n: now[n] for n in now if n.startswith(ALARM) and now[n]}
        alarms = [f"{n.removeprefix(ALARM)} {count}" for n, count in rang.items()]
        if now:
            said.append(f"alarms: {', '.join(alarms) or 'none'}")
        if not self._step() or time.monotonic() - self._stepped_s > LONG_STEP_S:
            said.append("no new step" if self._step() else "no step yet")
            said += [f"trainer: {line}" for line in last_lines(self._trainer_log)[-1:]]
        return ", ".join(said)

    def view(self, programs: Sequence[Program]) -> RenderableType:
        """Return what a terminal shows."""
        names, numbers = ("program", "state"), ("for", "restarts")
        table = FittingTable(names, numbers, box=None, pad_edge=False)
        now = time.monotonic()
        for program in programs:
            table.add_row(
                *(program.name, program.state),
                *(_clock(now - program.since_s), str(program.restarts)),
            )
        lines = (self.place(), self.numbers(), f"logs: {programs[0].log.parent}", "")
        return Group(*map(Text, lines), table)
