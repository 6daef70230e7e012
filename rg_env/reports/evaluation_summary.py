"""From the results of an evaluation to its numbers and its table. Pure.

Intervals are Wilson's at 95 %, with the mean score in the place of the proportion. For
scores of 0 and 1 that is exact in form; for scores in between it is too wide rather
than too narrow, since no variable in [0, 1] varies more than a coin of its mean.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table

Z_95 = 1.959963984540054


@dataclasses.dataclass(frozen=True)
class EvalResult:
    """One evaluation item.

    Attributes:
        task: The registered task that made the item.
        category: The library's category of the task.
        score: In [0, 1]; None where the request failed, which is no wrong answer.
        outcome: Why the score is what it is.
        sample: What is written to samples.jsonl.
    """

    task: str
    category: str
    score: float | None
    outcome: str
    sample: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A mean score with its 95 % interval, over `items` items, all in [0, 1]."""

    mean: float
    low: float
    high: float
    items: int


def estimate(scores: Sequence[float]) -> Estimate:
    """Return the mean of scores in [0, 1] with its interval.

    Raises:
        ValueError: There are no scores.
    """
    if not scores:
        raise ValueError("no scores to estimate from")
    n = len(scores)
    mean = math.fsum(scores) / n
    centre = (mean + Z_95**2 / (2 * n)) / (1 + Z_95**2 / n)
    half = (Z_95 / (1 + Z_95**2 / n)) * math.sqrt(
        mean * (1 - mean) / n + Z_95**2 / (4 * n * n)
    )
    # Rounding alone can put the mean of equal scores outside.
    low, high = min(mean, centre - half), max(mean, centre + half)
    return Estimate(mean, max(0.0, low), min(1.0, high), n)


@dataclasses.dataclass(frozen=True)
class EvalSummary:
    """An evaluation's numbers.

    Attributes:
        overall: Over all items that have a score; None where none has.
        by_task: Task to estimate, sorted.
        by_category: Category to estimate, sorted.
        failed_requests: Items without a score.
        outcomes: Number of items by outcome.
    """

    overall: Estimate | None
    by_task: Mapping[str, Estimate]
    by_category: Mapping[str, Estimate]
    failed_requests: int
    outcomes: Mapping[str, int]

    def metrics(self) -> dict[str, float]:
        """Return flat numbers for metrics.json and W&B."""
        numbers: dict[str, float] = {"eval/failed_requests": self.failed_requests}
        if self.overall is not None:
            numbers["eval/mean_score"] = self.overall.mean
            # What the original calls the same number; a share of correct items it is
            # not, as `train/percent_correct` is one of rollouts.
            numbers["eval/percent_correct"] = self.overall.mean
            numbers["eval/percent_correct_low"] = self.overall.low
            numbers["eval/percent_correct_high"] = self.overall.high
            numbers["eval/items"] = self.overall.items
        for kind, group in (("category", self.by_category), ("task", self.by_task)):
            for name, value in group.items():
                numbers[f"eval/{kind}/{name}"] = value.mean
        numbers.update({f"eval/outcome/{k}": n for k, n in self.outcomes.items()})
        return numbers

    def table(self) -> Table:
        """Return the results as a table for the terminal."""
        table = Table(title="Evaluation (mean score, 95 % interval)")
        table.add_column("task or category")
        for heading in ("items", "score", "interval"):
            table.add_column(heading, justify="right")
        if self.overall is not None:
            table.add_row("all", *_cells(self.overall), style="bold")
            table.add_section()
        for name, value in self.by_category.items():
            table.add_row(f"category {name}", *_cells(value), style="cyan")
        table.add_section()
        for name, value in self.by_task.items():
            table.add_row(name, *_cells(value))
        return table


def _cells(value: Estimate) -> tuple[str, str, str]:
    interval = f"{value.low:.2f} to {value.high:.2f}"
    return str(value.items), f"{value.mean:.3f}", interval


def _grouped(pairs: Iterable[tuple[str, float]]) -> dict[str, Estimate]:
    scores: dict[str, list[float]] = {}
    for name, score in pairs:
        scores.setdefault(name, []).append(score)
    return {name: estimate(values) for name, values in sorted(scores.items())}


def summarise(results: Sequence[EvalResult]) -> EvalSummary:
    """Sum up an evaluation."""
    scored = [(r, r.score) for r in results if r.score is not None]
    outcomes: dict[str, int] = {}
    for result in results:
        outcomes[result.outcome] = outcomes.get(result.outcome, 0) + 1
    return EvalSummary(
        overall=estimate([score for _, score in scored]) if scored else None,
        by_task=_grouped((r.task, score) for r, score in scored),
        by_category=_grouped((r.category, score) for r, score in scored),
        failed_requests=len(results) - len(scored),
        outcomes=outcomes,
    )
