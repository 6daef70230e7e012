"""The numbers and tables of an evaluation, and of results side by side. Pure.

Scores are shown beside the share of completions that hold an answer, since a low score
may be one of format. What has no score, a failed request or an item that is not used,
is counted apart.
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
    WHOLE,
    Estimate,
    Numbers,
    completions_of_most_items,
    paired,
    plain,
    results,
    row_of,
    table_of,
    with_parts,
)
from rg_env.results.samples import NOT_USED, Sample
from rg_env.results.terminal import NumberTable

BY = ("by_item", "by_task")
BEST = ("best_of_k", "pass_at_k")


def _mean(value: Estimate | None, form: str = ".3f") -> str:
    return "" if value is None else format(value.mean, form)


def _score_table(title: str, rows: Iterable[tuple[str, Numbers]], k: int = 1) -> Table:
    """Return a table of names and what they came to, with k completions of an item."""
    best = [f"best of {k}", f"pass@{k}"] if k > 1 else []
    headings = ["items", "no score", "score", "by item", "by task", "right", *best]
    table = NumberTable("", [*headings, "answered"], title)
    for name, row in rows:
        table.add_row(
            Text(printable(name)),
            str(row["items"]),
            str(row["failed"] + row["not_used"]),
            _mean(row["by_item"]),
            *(of.interval(2) if of else "" for of in map(row.get, BY)),
            *(_mean(row[of]) for of in ("right", *BEST[: len(best)])),
            _mean(row["answered"], ".0%"),
        )
    return table


# -- one evaluation --------------------------------------------------------------------


class EvalSummary:
    """An evaluation's numbers, whatever the order of its samples.

    Attributes:
        k: Completions that most items have.
        overall: None where no sample has a score.
        failed_requests: Completions without a score.
        not_used: Task to items that are not used.
        items_digest: That of the items, None if the samples do not have one in common.
    """

    def __init__(self, samples: Iterable[Sample]) -> None:
        # The last digits of a sum of floats depend on their order.
        ordered = sorted(samples, key=lambda s: (*s.item, s.score or 0.0, s.outcome))
        table = table_of(map(row_of, ordered))
        self.k = completions_of_most_items(table)
        self.outcomes = Counter(sample.outcome for sample in ordered)
        self.not_used = Counter(s.task for s in ordered if s.outcome == NOT_USED)
        digests = {sample.row.get("items_digest") for sample in ordered}
        self.items_digest = digests.pop() if len(digests) == 1 else None
        self._parts = results(with_parts(table), k=self.k)
        whole = self._parts.get(WHOLE)
        self.failed_requests = whole["failed"] if whole else 0
        self.overall = whole if whole and whole["items"] else None

    def metrics(self) -> dict[str, float]:
        """Return flat numbers for metrics.json and W&B."""
        numbers: dict[str, float] = {
            "eval/failed_requests": self.failed_requests,
            "eval/items_not_used": self.not_used.total(),
        }
        if whole := self.overall:
            cut = whole["truncated"]
            numbers |= {
                "eval/mean_score": whole["by_item"].mean,
                # What the original calls the same number; a share of correct items it
                # is not, as `train/percent_correct` is one of rollouts.
                "eval/percent_correct": whole["by_item"].mean,
                "eval/percent_correct_low": whole["by_item"].low,
                "eval/percent_correct_high": whole["by_item"].high,
                "eval/items": whole["items"],
                "eval/truncated": round(cut.mean * cut.samples) if cut else 0,
            }
            for name in ("right", "answered", *BEST):
                if whole[name] is not None:
                    numbers[f"eval/{name}"] = whole[name].mean
        for (kind, name), part in self._parts.items():
            if kind != "all" and part["items"]:
                numbers[f"eval/{kind}/{name}"] = part["by_item"].mean
        return numbers | {f"eval/outcome/{k}": n for k, n in self.outcomes.items()}

    def as_json(self) -> dict[str, Any]:
        """Return all as JSON."""
        same = ("items_digest", "k", "failed_requests", "not_used", "outcomes")
        return {**{name: getattr(self, name) for name in same}, **plain(self._parts)}

    def table(self, *, with_tasks: bool = False) -> Table:
        """Return the results as a table for the terminal, tasks on request."""
        title = "Evaluation: mean score, 95 % intervals"
        title += f", {self.k} completions of an item" if self.k > 1 else ""
        rows = (
            (name or kind, part)
            for (kind, name), part in self._parts.items()
            if with_tasks or kind != "task"
        )
        return _score_table(title, rows, self.k)


# -- several results -------------------------------------------------------------------


class Comparison:
    """Several results and pairs of them, on all and on each category and task.

    A mean is of all completions, as the published `average_mean_score` of a task is; a
    difference is the mean over the items that both results have, of the difference of
    their means there. Every two results are paired, or the first with each other.

    Args:
        names: Those of the results.
        table: Their samples.
        all_pairs: Whether every two results are paired.
    """

    def __init__(
        self, names: Sequence[str], table: pl.DataFrame, *, all_pairs: bool = False
    ) -> None:
        self._names = names
        numbers = range(len(names))
        pairs = itertools.combinations(numbers, 2)
        table = with_parts(table)
        self._results = [results(table.filter(result=number)) for number in numbers]
        self._pairs = {
            pair: paired(table, *pair) for pair in pairs if all_pairs or pair[0] == 0
        }

    def as_json(self) -> dict[str, Any]:
        """Return all as plain values."""
        names = self._names
        differences = []
        for (a, b), of in self._pairs.items():
            parts = {part: {"by_item": less} for part, less in of.items()}
            differences.append({"of": names[b], "less": names[a], **plain(parts)})
        numbers = zip(names, self._results, strict=True)
        return {
            "results": [{"name": name, **plain(of)} for name, of in numbers],
            "differences": differences,
        }

    def tables(self, *, with_tasks: bool) -> Iterator[Table | Text]:
        """Yield the names, all numbers, and the scores by part with differences.

        A difference has its interval by item and the number of shared items.
        """
        headings = [str(number + 1) for number in range(len(self._names))]
        for heading, name in zip(headings, self._names, strict=True):
            yield Text(f"{heading}  {printable(name)}")
        whole = (parts[WHOLE] for parts in self._results)
        rows = zip(headings, whole, strict=True)
        yield _score_table("Mean score with 95 % intervals", rows)
        headings += [f"{b + 1}-{a + 1}" for a, b in self._pairs]
        title = "Mean score, and differences with 95 % intervals (shared items)"
        table = NumberTable("", headings, title)
        for part in sorted({part for of in self._results for part in of}):
            if part[0] == "task" and not with_tasks:
                continue
            numbers = (of.get(part, {}) for of in self._results)
            cells = [_mean(of.get("by_item")) for of in numbers]
            for of in self._pairs.values():
                less = of.get(part)
                shared = f" {less.interval()} ({less.samples})" if less else ""
                cells.append(_mean(less) + shared)
            table.add_row(Text(printable(part[1]) or part[0]), *cells)
        yield table
