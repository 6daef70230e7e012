"""From the samples of an evaluation to its numbers and its table. Pure.

Scores are shown beside the share of completions that hold an answer and the score of
those, since a low score may be one of format. What has no score, a failed request or an
item that is not used, is counted apart.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import polars as pl
from rich import box
from rich.text import Text

from rg_env.errors import counted
from rg_env.evaluation.numbers import (
    WHOLE,
    Estimate,
    PartResult,
    results,
    row_of,
    table_of,
    with_parts,
)
from rg_env.evaluation.samples import NOT_USED, Sample
from rg_env.items.evaluation_specs import load_preset
from rg_env.reports.fitting_table import FittingTable
from rg_env.scoring.score import UNSCORED
from rg_env.tasks.selection import PresetName


@dataclasses.dataclass(frozen=True)
class EvalSummary:
    """An evaluation's numbers.

    Attributes:
        k: Completions of an item.
        overall: Over all samples; None where none has a score.
        failed_requests: Completions without a score.
        not_used: Task to items that are not used, sorted.
        outcomes: Number of completions by outcome.
        changed: Tasks of a preset whose questions are not all the published ones.
        as_published: Over all others, where there are such tasks.
    """

    k: int
    overall: PartResult | None
    by_category: Mapping[str, PartResult]
    by_task: Mapping[str, PartResult]
    failed_requests: int
    not_used: Mapping[str, int]
    outcomes: Mapping[str, int]
    changed: Sequence[str] = ()
    as_published: PartResult | None = None

    def metrics(self) -> dict[str, float]:
        """Return flat numbers for metrics.json and W&B."""
        numbers: dict[str, float] = {
            "eval/failed_requests": self.failed_requests,
            "eval/items_not_used": sum(self.not_used.values()),
        }
        if self.overall is not None:
            whole = self.overall
            numbers |= {
                "eval/mean_score": whole.by_item.mean,
                # What the original calls the same number; a share of correct items it
                # is not, as `train/percent_correct` is one of rollouts.
                "eval/percent_correct": whole.by_item.mean,
                "eval/percent_correct_low": whole.by_item.low,
                "eval/percent_correct_high": whole.by_item.high,
                "eval/items": whole.items,
                "eval/right": whole.right.mean,
                "eval/answered": whole.answered,
                "eval/truncated": whole.truncated or 0,
            }
            for name in ("score_of_answered", "best_of_k", "pass_at_k"):
                if (value := getattr(whole, name)) is not None:
                    numbers[f"eval/{name}"] = value.mean
        for kind, group in (("category", self.by_category), ("task", self.by_task)):
            for name, part in group.items():
                numbers[f"eval/{kind}/{name}"] = part.by_item.mean
        return numbers | {f"eval/outcome/{k}": n for k, n in self.outcomes.items()}

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON."""

        def plain(value: Any) -> Any:
            if isinstance(value, dict):
                return {name: plain(of) for name, of in value.items()}
            return value.as_json() if isinstance(value, PartResult) else value

        return {name: plain(value) for name, value in vars(self).items()}

    def table(self, *, with_tasks: bool = False) -> FittingTable:
        """Return the results as a table for the terminal, tasks on request."""
        each = f", {self.k} completions of an item" if self.k > 1 else ""
        title = f"Evaluation: mean score, 95 % intervals{each}"
        best, passed = f"best of {self.k}", f"pass@{self.k}"
        of_k = (best, passed) if self.k > 1 else ()
        headings = ("items", "score", "by item", "by task", "right", *of_k)
        table = FittingTable(
            [""],
            [*headings, "answered", "score of answered"],
            ["score of answered", "by task", best, "items", "right", "answered"],
            title=title,
            box=box.SIMPLE,
            pad_edge=False,
        )
        if self.overall is not None:
            table.add_row("all", *self._cells(self.overall), style="bold")
            if self.as_published is not None:
                table.add_row("as published", *self._cells(self.as_published))
            table.add_section()
        for name, row in self.by_category.items():
            table.add_row(name or "no category", *self._cells(row), style="cyan")
        table.add_section()
        for name, row in self.by_task.items() if with_tasks else ():
            table.add_row(Text(name), *self._cells(row))
        return table

    def _cells(self, row: PartResult) -> list[str]:
        of_k = [row.best_of_k, row.pass_at_k] if self.k > 1 else []
        intervals = (row.by_item, row.by_task)
        return [
            str(row.items),
            _shown(row.by_item),
            *("" if of is None else of.interval(2) for of in intervals),
            *map(_shown, [row.right, *of_k]),
            f"{row.answered:.0%}",
            _shown(row.score_of_answered),
        ]

    def notes(self) -> list[str]:
        """Return what the table lacks: what was cut off, and what has no score."""
        notes = []
        if self.overall is not None and self.overall.truncated:
            of = f"{self.overall.truncated} of {self.overall.completions}"
            notes.append(f"truncated at the longest length: {of} completions")
        unscored, unused = self.outcomes.get(UNSCORED, 0), sum(self.not_used.values())
        tasks = ", ".join(f"{task} {n}" for task, n in self.not_used.items())
        for number, noun, why in (
            (self.failed_requests - unscored, "completion", "whose requests failed"),
            (unscored, "completion", "to which the workers gave none"),
            (unused, "item", f"not used ({tasks})"),
        ):
            if number:
                notes.append(f"without a score: {counted(number, noun)} {why}")
        if self.changed:
            notes.append(
                "not all questions are the published ones, since the library has"
                " changed ('as published' is without these tasks): "
                + ", ".join(self.changed)
            )
        return notes


def _shown(value: Estimate | None) -> str:
    return "" if value is None else f"{value.mean:.3f}"


def _changed_tasks(samples: Iterable[Sample]) -> list[str]:
    pairs = {(sample.row.get("preset"), sample.task) for sample in samples}
    known = [(preset, task) for preset, task in pairs if preset in get_args(PresetName)]
    return sorted(task for preset, task in known if task in load_preset(preset).changed)


def summarise(samples: Sequence[Sample]) -> EvalSummary:
    """Sum up an evaluation, whatever the order of its samples."""
    # The last digits of a sum of floats depend on their order.
    samples = sorted(samples, key=lambda s: (*s.item, s.score or 0.0, s.outcome))
    table = table_of(map(row_of, samples))
    is_used = pl.col("outcome") != NOT_USED
    # What most items have: a question that was drawn twice has twice as many.
    sizes = table.filter(is_used).group_by("item", maintain_order=True).len()["len"]
    k = statistics.mode(sizes) if len(sizes) else 1
    parts = results(with_parts(table), k=k)
    changed = _changed_tasks(samples)
    others = table.filter(~pl.col("task").is_in(changed))
    of_others = results(with_parts(others, ["all"]), k=k)
    not_used = Counter(s.task for s in samples if s.outcome == NOT_USED)
    by_kind: dict[str, dict[str, PartResult]] = {"category": {}, "task": {}}
    for kind, name in sorted(parts.keys() - {WHOLE}):
        by_kind[kind][name] = parts[kind, name]
    return EvalSummary(
        k=k,
        overall=parts.get(WHOLE),
        by_category=by_kind["category"],
        by_task=by_kind["task"],
        failed_requests=sum(s.score is None for s in samples) - not_used.total(),
        not_used=dict(sorted(not_used.items())),
        outcomes=dict(Counter(sample.outcome for sample in samples)),
        changed=changed,
        as_published=of_others.get(WHOLE) if changed else None,
    )
