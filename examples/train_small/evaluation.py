"""The held-out score, and whether what was held out was asked in training."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from rg_env.errors import RunFailed
from rg_env.reports.evaluation_summary import Estimate, estimate

SAMPLES = "samples.jsonl"
NUMBERS = "metrics.json"
"""Written when all samples are."""

PAUSE_S = 60.0
"""Between two groups: so long nothing was asked for."""

Scores = dict[str, Estimate]
"""By task."""


def shown(score: Estimate) -> str:
    """Return a score with its interval."""
    return f"{score.mean:.3f} ({score.low:.3f} to {score.high:.3f})"


def held_out_scores(folder: Path, known: Container[str] = frozenset()) -> Scores:
    """Read a folder that `evaluate` has written: task to mean score with interval.

    A question that is asked twice counts once, since its answer is the same.

    Args:
        folder: Of an evaluation.
        known: Questions that do not count, since a warm start has shown their answers.

    Raises:
        RunFailed: An item has no score, since its requests failed.
    """
    scores: dict[str, dict[str, float]] = {}
    for sample in _lines(folder / SAMPLES):
        if sample["score"] is None:
            raise RunFailed(f"{folder}: an item has no score: {sample['outcome']}")
        if sample["question"] in known:
            continue
        scores.setdefault(sample["task"], {})[sample["question"]] = sample["score"]
    return {
        task: estimate(list(of_question.values()))
        for task, of_question in sorted(scores.items())
    }


class RunningScores:
    """The held-out scores that `serve` writes during a run, again and again.

    Args:
        folder: `data_dir_to_save_evals`; each evaluation after the first has a number
            behind that name.
        known: Questions that do not count.
    """

    def __init__(self, folder: Path, known: Container[str]) -> None:
        self._folder, self._known = folder, known
        self._read = 0
        while self._next().exists():
            self._read += 1

    def _next(self) -> Path:
        number = f"_{self._read}" if self._read else ""
        return self._folder.with_name(f"{self._folder.name}{number}")

    def new(self) -> Scores | None:
        """Return the scores that came since the last call, None if none are whole."""
        folder = self._next()
        if not (folder / NUMBERS).exists():
            return None
        self._read += 1
        try:
            return held_out_scores(folder, self._known)
        except RunFailed:  # the environment has said so
            return None


def held_out_questions(folder: Path) -> set[str]:
    """Return the questions that `evaluate` has asked."""
    return {sample["question"] for sample in _lines(folder / SAMPLES)}


def gold_questions(path: Path) -> set[str]:
    """Return the questions of a warm start."""
    return {row["messages"][-2]["content"] for row in _lines(path)}


@dataclass(frozen=True)
class AskedGroup:
    """A group of training, from a dump file.

    Attributes:
        time: When it was scored, as ISO 8601.
        task: That made the item.
        question: Of the item.
        level: Of the item, in 0 to 1; None without one.
        score: Mean of its rollouts.
        has_signal: Whether its rewards differ.
    """

    time: str
    task: str
    question: str
    level: float | None
    score: float
    has_signal: bool


class AskedGroups:
    """What `serve` has dumped so far; it is asked again and again.

    Args:
        folder: Of the dump files, which hold every group that was scored.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, int] = {}

    def new(self) -> list[AskedGroup]:
        """Return the groups since the last call, in the order of their time."""
        groups = []
        for name in sorted({p.name.removesuffix(".part") for p in self._files()}):
            with self._opened(name) as lines:
                lines.seek(self._read.get(name, 0))
                for line in lines:
                    if line.endswith(b"\n"):
                        self._read[name] = self._read.get(name, 0) + len(line)
                        groups.append(_asked(json.loads(line)))
        return sorted(groups, key=lambda group: group.time)

    def _files(self) -> Iterator[Path]:
        return self._folder.glob("*_rollouts_*.jsonl*")

    def _opened(self, name: str) -> BinaryIO:
        """Open a file, which loses its ending `.part` when it is full."""
        try:
            return (self._folder / f"{name}.part").open("rb")
        except FileNotFoundError:
            return (self._folder / name).open("rb")


def _asked(row: Mapping[str, Any]) -> AskedGroup:
    rollouts = row["rollouts"]
    return AskedGroup(
        time=row["time"],
        task=row["task"],
        question=rollouts[0]["conversation"][-2]["content"],
        level=row["level"],
        score=sum(rollout["score"] for rollout in rollouts) / len(rollouts),
        has_signal=len({rollout["reward"] for rollout in rollouts}) > 1,
    )


def asked_rows(groups: Sequence[AskedGroup]) -> list[tuple[Any, ...]]:
    """Return (seconds, task, level, score, has signal) of each.

    The seconds are those since the first one, without pauses: a run that was ended may
    go on the next day.
    """
    rows: list[tuple[Any, ...]] = []
    seconds = 0.0
    times = [datetime.fromisoformat(group.time) for group in groups]
    for group, before, time in zip(groups, times[:1] + times, times, strict=False):
        passed = (time - before).total_seconds()
        seconds += passed if passed < PAUSE_S else 0.0
        rows.append((seconds, group.task, group.level, group.score, group.has_signal))
    return rows


def latest_levels(groups: Iterable[AskedGroup]) -> dict[str, float]:
    """Return the level that each task was last asked at, where it has one."""
    return {g.task: g.level for g in groups if g.level is not None}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
