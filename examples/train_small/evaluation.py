"""The held-out score, and the groups that were sampled in training."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rg_env.errors import RunError
from rg_env.results.numbers import Estimate, estimates, row_of, table_of, with_parts
from rg_env.results.samples import Sample

PAUSE_S = 60.0
"""Between two groups: so long nothing was asked for."""

Scores = dict[str, Estimate]
"""By task."""


def shown(score: Estimate) -> str:
    """Return a score with its interval."""
    return f"{score.mean:.3f} ({score.low:.3f} to {score.high:.3f})"


def key(question: str) -> str:
    """Return what is the same of questions that differ in capitals alone.

    A word of `spell_backward` may come with a capital and without one, and who knows
    the one answer knows the other.
    """
    return question.casefold()


def held_out_scores(folder: Path, known: Container[str]) -> Scores:
    """Read a folder that `evaluate` has written: task to mean score with interval.

    A question that was drawn twice counts once, since its answer is the same.

    Args:
        folder: Of an evaluation.
        known: Keys of questions that do not count, since training has seen them.

    Raises:
        RunError: An item has no score, since its requests failed.
    """
    samples: dict[tuple[str, str], Sample] = {}
    for row in _lines(folder / "samples.jsonl"):
        task, question, score = row["task"], key(row["question"]), row.get("score")
        if score is None:
            raise RunError(f"{folder}: an item has no score: {row['outcome']}")
        if question not in known:
            samples[task, question] = Sample(task, "", question, score, row["outcome"])
    table = with_parts(table_of(map(row_of, samples.values())), ["task"])
    return {str(task): found for (_, task), found in estimates(table).items()}


def held_out_keys(folder: Path) -> set[str]:
    """Return the keys of the questions that `evaluate` has asked."""
    return {key(sample["question"]) for sample in _lines(folder / "samples.jsonl")}


def gold_keys(path: Path) -> set[str]:
    """Return the keys of the questions of a warm start."""
    return {key(row["messages"][-2]["content"]) for row in _lines(path)}


@dataclass(frozen=True)
class SampledGroup:
    """A group of training, from a dump file.

    Attributes:
        time: When it was scored, as ISO 8601.
        task: That made the item.
        question: Of the item.
        level: Of the item, in 0 to 1; None without one.
        score: Mean of its rollouts.
        has_variance: Whether its rewards differ.
    """

    time: str
    task: str
    question: str
    level: float | None
    score: float
    has_variance: bool


def sampled_groups(folder: Path) -> list[SampledGroup]:
    """Read the dump files of a run, which hold every group that was scored.

    Returns:
        In the order of their time.
    """
    # Not the files of what did not reach the API, whose groups are in these as well.
    kinds = ("environment_rollouts", "environment_FAILED_rollouts")
    files = [file for kind in kinds for file in folder.glob(f"*_{kind}_*.jsonl*")]
    groups = [_group(row) for file in files for row in _lines(file)]
    return sorted(groups, key=lambda group: group.time)


def _group(row: Mapping[str, Any]) -> SampledGroup:
    rollouts = row["rollouts"]
    return SampledGroup(
        time=row["time"],
        task=row["task"],
        question=rollouts[0]["conversation"][-2]["content"],
        level=row["level"],
        score=sum(rollout["score"] for rollout in rollouts) / len(rollouts),
        has_variance=len({rollout["reward"] for rollout in rollouts}) > 1,
    )


def sampled_rows(groups: Sequence[SampledGroup]) -> list[tuple[Any, ...]]:
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
        rows.append((seconds, group.task, group.level, group.score, group.has_variance))
    return rows


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read a JSONL file, without a last line that a kill left half."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)
