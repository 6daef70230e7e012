"""The numbers and tables of an evaluation, and of results side by side. Pure.

Scores are shown beside the share of completions that hold an answer and the score of
those, since a low score may be one of format. What has no score, a failed request or an
item that is not used, is counted apart.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from rg_env.errors import printable
from rg_env.evaluation.numbers import (
    PART,
    WHOLE,
    Estimate,
    Paired,
    PartResult,
    paired,
    results,
    row_of,
    table_of,
    with_parts,
)
from rg_env.evaluation.samples import NOT_USED, Sample
from rg_env.items.evaluation_specs import load_preset
from rg_env.reports.terminal import NumberTable
from rg_env.scoring.score import UNSCORED
from rg_env.tasks.selection import PresetName


def _mean(value: Estimate | None) -> str:
    return "" if value is None else f"{value.mean:.3f}"


def _interval(value: Estimate | None, digits: int = 3) -> str:
    return "" if value is None else value.interval(digits)


def _score_table(
    title: str, rows: Iterable[tuple[str, PartResult | None]], k: int = 1
) -> Table:
    """Return a table of names and what they came to, with k completions of an item."""
    best = [f"best of {k}", f"pass@{k}"] if k > 1 else []
    headings = ["items", "score", "by item", "by task", "right", *best, "answered"]
    more = ["completions", "truncated", "no score", "score of answered"]
    last = [*more, "by task", *best[:1], "items", "right", "answered"]
    table = NumberTable(
        [""], [*headings, *more], last, title=title, box=box.SIMPLE_HEAD
    )
    for name, row in rows:
        if row is not None:
            table.add_row(
                Text(printable(name)),
                str(row.items),
                _mean(row.by_item),
                *(_interval(of, 2) for of in (row.by_item, row.by_task)),
                *map(_mean, [row.right, row.best_of_k, row.pass_at_k][: 1 + len(best)]),
                f"{row.answered:.0%}",
                str(row.completions),
                "" if row.truncated is None else str(row.truncated),
                str(row.failed + row.not_used),
                _mean(row.score_of_answered),
            )
    return table


# -- one evaluation --------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class EvalSummary:
    """An evaluation's numbers, with k completions of an item.

    Attributes:
        overall: None where no sample has a score.
        failed_requests: Completions without a score.
        not_used: Task to items that are not used.
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
        if whole := self.overall:
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

    def table(self, *, with_tasks: bool = False) -> Table:
        """Return the results as a table for the terminal, tasks on request."""
        title = "Evaluation: mean score, 95 % intervals"
        title += f", {self.k} completions of an item" if self.k > 1 else ""
        rows = [("all", self.overall), ("as published", self.as_published)]
        rows += [(name or "no category", of) for name, of in self.by_category.items()]
        rows += self.by_task.items() if with_tasks else []
        return _score_table(title, rows, self.k)

    def notes(self) -> list[str]:
        """Return what the table lacks: what was cut off, and what has no score."""
        unscored, unused = self.outcomes.get(UNSCORED, 0), sum(self.not_used.values())
        tasks = ", ".join(f"{task} {n}" for task, n in self.not_used.items())
        truncated = self.overall.truncated if self.overall else 0
        none = "completions without a score,"
        counts = {
            "completions truncated at the longest length": truncated,
            f"{none} as their requests failed": self.failed_requests - unscored,
            f"{none} as the workers gave none": unscored,
            f"items without a score, as they are not used ({tasks})": unused,
        }
        notes = [f"{what}: {number}" for what, number in counts.items() if number]
        if self.changed:
            notes.append(
                "not all questions are the published ones, since the library has"
                " changed ('as published' is without these tasks): "
                + ", ".join(self.changed)
            )
        return notes


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
    others = with_parts(table.filter(~pl.col("task").is_in(changed)), ["all"])
    not_used = Counter(s.task for s in samples if s.outcome == NOT_USED)
    by_kind: dict[str, dict[str, PartResult]] = {"all": {}, "category": {}, "task": {}}
    for kind, name in sorted(parts):
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
        as_published=results(others, k=k).get(WHOLE) if changed else None,
    )


# -- several results -------------------------------------------------------------------


class Comparison:
    """Several results and pairs of them, on all and on each category and task.

    A mean is of all completions, as the published `average_mean_score` of a task is; a
    difference is the mean over the items that both results have, of the difference of
    their means there. Every two results are paired, or the first with each other.
    """

    def __init__(
        self, names: Sequence[str], table: pl.DataFrame, *, all_pairs: bool = False
    ) -> None:
        self._names = names
        pairs = itertools.combinations(range(len(names)), 2)
        self._pairs = [pair for pair in pairs if all_pairs or pair[0] == 0]
        table = with_parts(table)
        self._parts = sorted(table.select(PART).unique().iter_rows())
        self._measured = results(table, ["result", *PART])
        self._paired = [paired(table, *pair) for pair in self._pairs]

    def numbers(self) -> dict[str, Any]:
        """Return all as plain values."""
        names = self._names
        measured, by_pair = self._measured, zip(self._pairs, self._paired, strict=True)
        return {
            "results": [
                {"name": name}
                | self._by_kind({p: measured.get((number, *p)) for p in self._parts})
                for number, name in enumerate(names)
            ],
            "differences": [
                {"of": names[b], "less": names[a]}
                | self._by_kind({p: of.get(p, Paired()) for p in self._parts})
                for (a, b), of in by_pair
            ],
        }

    @staticmethod
    def _by_kind(values: Mapping[Any, Any]) -> dict[str, Any]:
        plain: dict[str, Any] = {"all": {}, "category": {}, "task": {}}
        for (kind, name), value in values.items():
            plain[kind][name] = dataclasses.asdict(value) if value else None
            if isinstance(value, PartResult):
                answered = value.score_of_answered
                plain[kind][name] |= {
                    "without_score": value.failed + value.not_used,
                    "score_of_answered": answered.mean if answered else None,
                }
        return plain | {"all": plain["all"][""]}

    def tables(self, *, with_tasks: bool) -> Iterator[Table]:
        """Yield the scores of all results, the differences, and both of their parts."""
        each = ((n, self._measured.get((n, *WHOLE))) for n in range(len(self._names)))
        rows = ((str(number + 1), of) for number, of in each)
        yield _score_table("Mean score with 95 % intervals", rows)
        headings = ["items", "means", "difference", "by item", "by task", "only in one"]
        pairs = _table("Differences, of the items of both", "", headings)
        for (a, b), of in zip(self._pairs, self._paired, strict=True):
            pair = of.get(WHOLE, Paired())
            pairs.add_row(
                f"{b + 1}-{a + 1}",
                str(pair.by_item.samples if pair.by_item else 0),
                "{1:.3f} vs {0:.3f}".format(*pair.means) if pair.means else "",
                _mean(pair.by_item),
                *map(_interval, [pair.by_item, pair.by_task]),
                f"{a + 1}: {pair.only_first}, {b + 1}: {pair.only_second}",
            )
        if self._pairs:
            yield pairs
        for kind in ("category", "task") if with_tasks else ("category",):
            yield self._part_table(kind)

    def _part_table(self, kind: str) -> Table:
        numbers = range(len(self._names))
        headings = [str(number + 1) for number in numbers]
        headings += [f"{b + 1}-{a + 1}" for a, b in self._pairs]
        title = f"Mean score by {kind}, and differences with intervals by item"
        parts = [part for part in self._parts if part[0] == kind]
        table = _table(title, kind, headings)
        for part in parts:
            of_part = [self._measured.get((number, *part)) for number in numbers]
            between = [of.get(part, Paired()).by_item for of in self._paired]
            table.add_row(
                Text(printable(part[1])),
                *(_mean(one.by_item) if one else "" for one in of_part),
                *(f"{_mean(one)} {_interval(one)}" for one in between),
            )
        return table


def _table(title: str, first: str, others: Sequence[str]) -> Table:
    last = ["only in one", "by task", "by item", "items"]
    options: dict[str, Any] = {"box": box.SIMPLE_HEAD, "padding": 0}
    return NumberTable([first], others, last, title=title, **options)
