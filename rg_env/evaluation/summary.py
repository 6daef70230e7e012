"""From the samples of an evaluation to its numbers and its table. Pure.

Scores are shown beside the share of completions that hold an answer and the score of
those, since a low score may be one of format. What has no score, a failed request or an
item that is not used, is counted apart.
"""

from __future__ import annotations

import dataclasses
import operator
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from rich import box
from rich.text import Text

from rg_env.errors import counted
from rg_env.evaluation.samples import NOT_USED, Sample, scored
from rg_env.evaluation.statistics import Estimate, best_of, estimate, grouped
from rg_env.reports.fitting_table import FittingTable
from rg_env.scoring.score import UNSCORED
from rg_env.tasks.evaluation_specs import PresetName, load_preset


@dataclasses.dataclass(frozen=True)
class PartResult:
    """What some samples came to: all of them, those of a category or of a task.

    Estimates are clustered by item; best_of_k and pass_at_k are of the items that have
    k completions with a score, and None where k is 1.

    Attributes:
        by_item: Mean score of the completions.
        by_task: The same, clustered by task; None for a single task.
        right: Share of the completions whose score is 1.0, which is pass@1.
        best_of_k: Mean of the best score of k completions, without bias.
        pass_at_k: Chance that one of k completions is right, without bias.
        answered: Share of the completions that hold an answer.
        score_of_answered: Mean score of these.
        truncated: Completions that were cut off; None where no file says so.
        failed: Completions without a score.
        not_used: Items that are not used.
    """

    items: int
    completions: int
    by_item: Estimate
    by_task: Estimate | None
    right: Estimate
    best_of_k: Estimate | None
    pass_at_k: Estimate | None
    answered: float
    score_of_answered: Estimate | None
    truncated: int | None
    failed: int
    not_used: int

    def as_json(self) -> dict[str, Any]:
        """Return the same as JSON, with the mean score and its interval first."""
        found = dataclasses.asdict(self)
        by_item = found.pop("by_item")
        first = {name: by_item[name] for name in ("mean", "low", "high")}
        return {**first, **found}


def _score(sample: Sample) -> float:
    return sample.score or 0.0


_item, _task = operator.attrgetter("item"), operator.attrgetter("task")
_right = operator.attrgetter("is_right")


def _mean(
    samples: Sequence[Sample],
    value: Callable[[Sample], float] = _score,
) -> Estimate:
    items, tasks = map(_item, samples), map(_task, samples)
    return estimate([*map(value, samples)], [*items], [*tasks])


def _of_k(
    samples: Sequence[Sample], k: int, value: Callable[[Sample], float]
) -> Estimate | None:
    """Return the best of k completions of each item that has k or more."""
    best: dict[Any, float] = {
        item: best_of([*map(value, of_item)], k)
        for item, of_item in grouped(samples, _item).items()
        if len(of_item) >= k > 1
    }
    tasks = [task for task, _ in best]
    return estimate([*best.values()], [*best], tasks) if best else None


def result_of(samples: Sequence[Sample], k: int = 1) -> PartResult | None:
    """Return what samples came to, None where none has a score.

    Args:
        samples: With and without a score.
        k: Completions of an item.
    """
    done = scored(samples)
    if not done:
        return None
    by_item, answered = _mean(done), [s for s in done if s.is_answered]
    tasks = [*map(_task, done)]
    not_used = sum(sample.outcome == NOT_USED for sample in samples)
    is_known = any("finish_reason" in sample.row for sample in samples)
    return PartResult(
        items=by_item.clusters,
        completions=len(done),
        by_item=by_item,
        by_task=estimate([*map(_score, done)], tasks) if len({*tasks}) > 1 else None,
        right=_mean(done, _right),
        best_of_k=_of_k(done, k, _score),
        pass_at_k=_of_k(done, k, _right),
        answered=len(answered) / len(done),
        score_of_answered=_mean(answered) if answered else None,
        truncated=sum(s.is_truncated for s in samples) if is_known else None,
        failed=len(samples) - len(done) - not_used,
        not_used=not_used,
    )


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
            found = self.overall
            numbers |= {
                "eval/mean_score": found.by_item.mean,
                # What the original calls the same number; a share of correct items it
                # is not, as `train/percent_correct` is one of rollouts.
                "eval/percent_correct": found.by_item.mean,
                "eval/percent_correct_low": found.by_item.low,
                "eval/percent_correct_high": found.by_item.high,
                "eval/items": found.items,
                "eval/right": found.right.mean,
                "eval/answered": found.answered,
                "eval/truncated": found.truncated or 0,
            }
            others = {
                "score_of_answered": found.score_of_answered,
                "best_of_k": found.best_of_k,
                "pass_at_k": found.pass_at_k,
            }
            numbers |= {f"eval/{n}": e.mean for n, e in others.items() if e is not None}
        for kind, group in (("category", self.by_category), ("task", self.by_task)):
            for name, value in group.items():
                numbers[f"eval/{kind}/{name}"] = value.by_item.mean
        numbers.update({f"eval/outcome/{k}": n for k, n in self.outcomes.items()})
        return numbers

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON."""
        groups: dict[str, Any] = {
            name: {n: row.as_json() for n, row in getattr(self, name).items()}
            for name in ("by_category", "by_task")
        }
        for name in ("overall", "as_published"):
            row = getattr(self, name)
            groups[name] = None if row is None else row.as_json()
        return vars(self) | groups

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
        return [
            str(row.items),
            _shown(row.by_item),
            _interval(row.by_item),
            _interval(row.by_task),
            *map(_shown, [row.right, *of_k]),
            f"{row.answered:.0%}",
            _shown(row.score_of_answered),
        ]

    def notes(self) -> list[str]:
        """Return what the table lacks: what was cut off, and what has no score."""
        found = []
        if self.overall is not None and self.overall.truncated:
            of = f"{self.overall.truncated} of {self.overall.completions}"
            found.append(f"truncated at the longest length: {of} completions")
        unscored = self.outcomes.get(UNSCORED, 0)
        if number := self.failed_requests - unscored:
            lost = counted(number, "completion")
            found.append(f"without a score: {lost} whose requests failed")
        if unscored:
            lost = counted(unscored, "completion")
            found.append(f"without a score: {lost} to which the workers gave none")
        if number := sum(self.not_used.values()):
            tasks = ", ".join(f"{task} {n}" for task, n in self.not_used.items())
            lost = counted(number, "item")
            found.append(f"without a score: {lost} not used ({tasks})")
        if self.changed:
            found.append(
                "not all questions are the published ones, since the library has"
                " changed ('as published' is without these tasks): "
                + ", ".join(self.changed)
            )
        return found


def _shown(value: Estimate | None) -> str:
    return "" if value is None else f"{value.mean:.3f}"


def _interval(value: Estimate | None) -> str:
    return "" if value is None else value.interval(2)


def _results(pairs: Iterable[tuple[str, Sample]], k: int) -> dict[str, PartResult]:
    groups = grouped(pairs, lambda pair: pair[0])
    found = {
        str(name): result_of([sample for _, sample in groups[name]], k)
        for name in sorted(groups, key=str)
    }
    return {name: row for name, row in found.items() if row is not None}


def _changed_tasks(samples: Iterable[Sample]) -> list[str]:
    found = {(sample.row.get("preset"), sample.task) for sample in samples}
    return sorted(
        task
        for preset, task in found
        if preset in get_args(PresetName) and task in load_preset(preset).changed
    )


def summarise(samples: Sequence[Sample]) -> EvalSummary:
    """Sum up an evaluation, whatever the order of its samples."""
    # The last digits of a sum of floats depend on their order.
    samples = sorted(samples, key=lambda s: (*s.item, s.score or 0.0, s.outcome))
    used = [sample for sample in samples if sample.outcome != NOT_USED]
    by_item = Counter(sample.item for sample in used)
    # What most items have: a question that was drawn twice has twice as many.
    k = statistics.mode(by_item.values()) if by_item else 1
    not_used = Counter(s.task for s in samples if s.outcome == NOT_USED)
    changed = _changed_tasks(samples)
    others = [sample for sample in samples if sample.task not in changed]
    return EvalSummary(
        k=k,
        overall=result_of(samples, k),
        by_category=_results(((s.category, s) for s in samples), k),
        by_task=_results(((s.task, s) for s in samples), k),
        failed_requests=sum(sample.score is None for sample in used),
        not_used=dict(sorted(not_used.items())),
        outcomes=dict(Counter(sample.outcome for sample in samples)),
        changed=changed,
        as_published=result_of(others, k) if changed else None,
    )
