"""The results and tables of an evaluation, and of several results side by side. Pure.

Scores are shown beside the share of completions that contain an answer, because a low
score may be due to the format. Completions without a score, such as failed requests,
are counted apart.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import polars as pl
from rich.table import Table
from rich.text import Text

from rg_env.errors import printable
from rg_env.results.estimates import (
    OVERALL,
    Estimate,
    PartResult,
    as_json,
    estimate_differences,
    measure_parts,
    row_of,
    table_of,
    usual_completions,
    with_parts,
)
from rg_env.results.samples import NOT_USED, Sample
from rg_env.results.terminal import NumberTable


def _mean(estimate: Estimate | None, form: str = ".3f") -> str:
    return "" if estimate is None else format(estimate.mean, form)


def _interval(estimate: Estimate | None) -> str:
    return "" if estimate is None else estimate.interval(2)


def _score_table(
    title: str, parts: Iterable[tuple[str, PartResult]], k: int = 1
) -> Table:
    """Return a table with a row for each name, for k completions of an item."""
    best = [f"best of {k}", f"pass@{k}"] if k > 1 else []
    headings = ["items", "no score", "score", "by item", "by task", "right", *best]
    table = NumberTable("", [*headings, "answered"], title)
    for name, part in parts:
        cells = [
            str(part["items"]),
            str(part["failed"] + part["not_used"]),
            _mean(part["by_item"]),
            _interval(part["by_item"]),
            _interval(part["by_task"]),
            _mean(part["right"]),
        ]
        if best:
            cells += [_mean(part["best_of_k"]), _mean(part["pass_at_k"])]
        table.add_row(Text(printable(name)), *cells, _mean(part["answered"], ".0%"))
    return table


# -- one evaluation --------------------------------------------------------------------


class EvalSummary:
    """The results of an evaluation, which do not depend on the order of its samples.

    Attributes:
        k: Number of completions that most items have.
        overall: The result of all samples; None if none has a score.
        failed_requests: Number of completions without a score.
        not_used: Task to its number of items that are not used.
        outcomes: Outcome to its number of samples.
        items_digest: Digest of the items; None if the samples do not have the same.
    """

    def __init__(self, samples: Iterable[Sample]) -> None:
        # The last digits of a sum of floats depend on their order.
        ordered = sorted(samples, key=lambda s: (*s.item, s.score or 0.0, s.outcome))
        table = table_of(map(row_of, ordered))
        self.k = usual_completions(table)
        self.outcomes = Counter(sample.outcome for sample in ordered)
        self.not_used = Counter(s.task for s in ordered if s.outcome == NOT_USED)
        digests = {sample.row.get("items_digest") for sample in ordered}
        self.items_digest = digests.pop() if len(digests) == 1 else None
        self._parts = measure_parts(with_parts(table), k=self.k)
        overall = self._parts.get(OVERALL)
        self.failed_requests = overall["failed"] if overall else 0
        self.overall = overall if overall and overall["items"] else None

    def metrics(self) -> dict[str, float]:
        """Return the metrics for metrics.json and W&B."""
        metrics: dict[str, float] = {
            "eval/failed_requests": self.failed_requests,
            "eval/items_not_used": self.not_used.total(),
        }
        if overall := self.overall:
            score = overall["by_item"]
            truncated = overall["truncated"]
            metrics |= {
                "eval/mean_score": score.mean,
                # The mean score under the name that the original environment gives it.
                # It is not the share of right completions.
                "eval/percent_correct": score.mean,
                "eval/percent_correct_low": score.low,
                "eval/percent_correct_high": score.high,
                "eval/items": overall["items"],
                "eval/truncated": (
                    round(truncated.mean * truncated.samples) if truncated else 0
                ),
            }
            for name in ("right", "answered", "best_of_k", "pass_at_k"):
                if overall[name] is not None:
                    metrics[f"eval/{name}"] = overall[name].mean
        for (kind, name), part in self._parts.items():
            if kind != "all" and part["items"]:
                metrics[f"eval/{kind}/{name}"] = part["by_item"].mean
        outcomes = self.outcomes.items()
        return metrics | {f"eval/outcome/{name}": count for name, count in outcomes}

    def as_json(self) -> dict[str, Any]:
        """Return all results as plain values."""
        return {
            "items_digest": self.items_digest,
            "k": self.k,
            "failed_requests": self.failed_requests,
            "not_used": self.not_used,
            "outcomes": self.outcomes,
            **as_json(self._parts),
        }

    def table(self, *, with_tasks: bool = False) -> Table:
        """Return the results as a table for the terminal, perhaps with the tasks."""
        title = "Evaluation: mean score, 95 % intervals"
        if self.k > 1:
            title += f", {self.k} completions of an item"
        parts = (
            (name or kind, part)
            for (kind, name), part in self._parts.items()
            if with_tasks or kind != "task"
        )
        return _score_table(title, parts, self.k)


# -- several results -------------------------------------------------------------------


class Comparison:
    """Results side by side, and the differences of pairs: overall and by part.

    A mean is of all completions, as the published `average_mean_score` of a task is. A
    difference is of the mean scores of an item, averaged over the items of both
    results.

    Args:
        names: The names of the results.
        table: The samples of all results.
        all_pairs: Whether to pair all results with each other, not only with the first.
    """

    def __init__(
        self, names: Sequence[str], table: pl.DataFrame, *, all_pairs: bool = False
    ) -> None:
        self._names = names
        indices = range(len(names))
        table = with_parts(table)
        self._results = [measure_parts(table.filter(result=index)) for index in indices]
        self._differences = {
            (first, second): estimate_differences(table, first, second)
            for first, second in itertools.combinations(indices, 2)
            if all_pairs or first == 0
        }

    def as_json(self) -> dict[str, Any]:
        """Return all results and differences as plain values."""
        names = self._names
        results = [
            {"name": name, **as_json(parts)}
            for name, parts in zip(names, self._results, strict=True)
        ]
        differences = []
        for (first, second), estimates in self._differences.items():
            parts = {part: {"by_item": value} for part, value in estimates.items()}
            pair = {"of": names[second], "less": names[first]}
            differences.append(pair | as_json(parts))
        return {"results": results, "differences": differences}

    def tables(self, *, with_tasks: bool) -> Iterator[Table | Text]:
        """Yield the names, a table of all results, and one of the scores of parts.

        It has the differences with their intervals and numbers of shared items.
        """
        headings = [str(number + 1) for number in range(len(self._names))]
        for heading, name in zip(headings, self._names, strict=True):
            yield Text(f"{heading}  {printable(name)}")
        overall = [parts[OVERALL] for parts in self._results]
        rows = zip(headings, overall, strict=True)
        yield _score_table("Mean score with 95 % intervals", rows)
        headings += [f"{second + 1}-{first + 1}" for first, second in self._differences]
        title = "Mean score, and differences with 95 % intervals (shared items)"
        table = NumberTable("", headings, title)
        for part in sorted({part for parts in self._results for part in parts}):
            kind, name = part
            if kind == "task" and not with_tasks:
                continue
            cells = [
                _mean(parts.get(part, {}).get("by_item")) for parts in self._results
            ]
            for estimates in self._differences.values():
                value = estimates.get(part)
                shared = f" {value.interval()} ({value.samples})" if value else ""
                cells.append(_mean(value) + shared)
            table.add_row(Text(printable(name) or kind), *cells)
        yield table
