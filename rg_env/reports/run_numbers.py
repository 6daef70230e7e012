"""The numbers of a run for W&B, gathered from those who count."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.reports.metrics import Metrics
from rg_env.tasks.feedback import Feedback


def run_numbers(
    metrics: Metrics,
    feedback: Feedback,
    correct: Sequence[float],
    scores: Sequence[float],
    events: Mapping[str, int],
) -> dict[str, Any]:
    """Return name and value of each number.

    Args:
        metrics: Counts of the rollouts; its events take up the others.
        feedback: Levels and weights.
        correct: 1.0 or 0.0 for each rollout since the last call: is it correct.
        scores: Their scores, in [0, 1].
        events: What others have counted since the run began.
    """
    numbers: dict[str, Any] = {}
    if correct:
        numbers["train/percent_correct"] = statistics.fmean(correct)
    if scores:
        numbers["train/mean_score"] = statistics.fmean(scores)
    for name, count in events.items():
        metrics.events[name] = count
    numbers.update(metrics.wandb_scalars())
    if feedback.moves_something:
        stats = feedback.stats()
        numbers.update({f"curriculum/{name}": n for name, n in stats.items()})
    return numbers
