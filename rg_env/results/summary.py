"""The numbers and tables of an evaluation, and of results side by side. Pure.

Scores are shown beside the share of completions that hold an answer, since a low score
may be one of format. What has no score, a failed request or an item that is not used,
is counted apart.
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from rich.table import Table
from rich.text import Text

from rg_env.errors import on_one_line, printable
from rg_env.results.estimates import (
    HAS_SCORE,
    KINDS,
    NO_PAIR,
    OUTCOME,
    PART,
    SCORE,
    WHOLE,
    Estimate,
    Numbers,
    paired,
    plain,
    results,
    row_of,
    table_of,
    with_parts,
)
from rg_env.results.samples import NOT_USED, SCORES, Sample
from rg_env.results.terminal import NumberTable

BY = ("by_item", "by_task")
BEST = ("best_of_k", "pass_at_k")


def _mean(value: Estimate | None) -> str:
    return "" if value is None else f"{value.mean:.3f}"


def _score_table(
    title: str, rows: Iterable[tuple[str, Numbers | None]], k: int = 1
) -> Table:
    """Return a table of names and what they came to, with k completions of an item."""
    best = [f"best of {k}", f"pass@{k}"] if k > 1 else []
    headings = ["items", "no score", "score", "by item", "by task", "right", *best]
    table = NumberTable("", [*headings, "answered"], title)
    for name, row in rows:
        if row is not None:
            table.add_row(
                Text(printable(name)),
                str(row["items"]),
                str(row["failed"] + row["not_used"]),
                _mean(row["by_item"]),
                *(of.interval(2) if of else "" for of in map(row.get, BY)),
                *(_mean(row[of]) for of in ("right", *BEST[: len(best)])),
                f"{row['answered']:.0%}",
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

        def counts(rows: pl.DataFrame, name: str) -> dict[Any, int]:
            return dict(rows.group_by(name, maintain_order=True).len().iter_rows())

        # A question that was drawn twice has twice as many.
        sizes = counts(table.filter(OUTCOME != NOT_USED), "item").values()
        self.k = statistics.mode(sizes) if sizes else 1
        self.outcomes = counts(table, "outcome")
        digests = {sample.row.get("items_digest") for sample in ordered}
        self.items_digest = digests.pop() if len(digests) == 1 else None
        self.not_used = counts(table.filter(OUTCOME == NOT_USED), "task")
        unused = sum(self.not_used.values())
        self.failed_requests = table["score"].null_count() - unused
        self._parts = dict(sorted(results(with_parts(table), k=self.k).items()))
        self.overall = self._parts.get(WHOLE)

    def metrics(self) -> dict[str, float]:
        """Return flat numbers for metrics.json and W&B."""
        numbers: dict[str, float] = {
            "eval/failed_requests": self.failed_requests,
            "eval/items_not_used": sum(self.not_used.values()),
        }
        if whole := self.overall:
            numbers |= {
                "eval/mean_score": whole["by_item"].mean,
                # What the original calls the same number; a share of correct items it
                # is not, as `train/percent_correct` is one of rollouts.
                "eval/percent_correct": whole["by_item"].mean,
                "eval/percent_correct_low": whole["by_item"].low,
                "eval/percent_correct_high": whole["by_item"].high,
                "eval/items": whole["items"],
                "eval/answered": whole["answered"],
                "eval/truncated": whole["truncated"] or 0,
            }
            for name in ("right", "score_of_answered", *BEST):
                if whole[name] is not None:
                    numbers[f"eval/{name}"] = whole[name].mean
        for (kind, name), part in self._parts.items():
            if kind != "all":
                numbers[f"eval/{kind}/{name}"] = part["by_item"].mean
        return numbers | {f"eval/outcome/{k}": n for k, n in self.outcomes.items()}

    def as_json(self) -> dict[str, Any]:
        """Return all as JSON; a part begins with its mean score and the interval."""
        by_kind: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
        for (kind, name), part in self._parts.items():
            others = plain(part)
            score = others.pop("by_item")
            first = {name: score[name] for name in ("mean", "low", "high")}
            by_kind[kind][name] = first | others
        same = ("items_digest", "k", "failed_requests", "not_used", "outcomes")
        return {
            **{name: getattr(self, name) for name in same},
            "overall": by_kind["all"].get(""),
            "by_category": by_kind["category"],
            "by_task": by_kind["task"],
        }

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
    """

    def __init__(
        self, names: Sequence[str], table: pl.DataFrame, *, all_pairs: bool = False
    ) -> None:
        self._names = names
        pairs = itertools.combinations(range(len(names)), 2)
        table = with_parts(table)
        self._parts = sorted(table.select(PART).unique().iter_rows())
        self._results = results(table, ["result", *PART])
        self._pairs = {
            pair: paired(table, *pair) for pair in pairs if all_pairs or pair[0] == 0
        }

    def numbers(self) -> dict[str, Any]:
        """Return all as plain values."""
        names = self._names
        of_results: list[Any] = [{"name": name} for name in names]
        of_pairs: list[Any] = [
            {"of": names[b], "less": names[a]} for a, b in self._pairs
        ]
        for kind, name in self._parts:
            for number, numbers in enumerate(of_results):
                if value := self._results.get((number, kind, name)):
                    answered = value["score_of_answered"]
                    value = plain(value) | {
                        "without_score": value["failed"] + value["not_used"],
                        "score_of_answered": answered.mean if answered else None,
                    }
                numbers.setdefault(kind, {})[name] = value
            for numbers, of in zip(of_pairs, self._pairs.values(), strict=True):
                pair = plain(of.get((kind, name), NO_PAIR))
                numbers.setdefault(kind, {})[name] = pair
        for numbers in (*of_results, *of_pairs):
            numbers["all"] = numbers["all"][""]
        return {"results": of_results, "differences": of_pairs}

    def tables(self, *, with_tasks: bool) -> Iterator[Table]:
        """Yield the numbers of all results, and their scores by part with differences.

        A difference has its interval by item and the number of shared items.
        """
        numbers = range(len(self._names))
        each = ((n, self._results.get((n, *WHOLE))) for n in numbers)
        rows = ((str(number + 1), of) for number, of in each)
        yield _score_table("Mean score with 95 % intervals", rows)
        headings = [str(number + 1) for number in numbers]
        headings += [f"{b + 1}-{a + 1}" for a, b in self._pairs]
        title = "Mean score, and differences with 95 % intervals (shared items)"
        table = NumberTable("", headings, title)
        for part in self._parts:
            if part[0] == "task" and not with_tasks:
                continue
            of_part = [self._results.get((number, *part)) for number in numbers]
            of_pairs = [of.get(part, NO_PAIR)["by_item"] for of in self._pairs.values()]
            table.add_row(
                Text(printable(part[1]) or part[0]),
                *(_mean(one["by_item"]) if one else "" for one in of_part),
                *(
                    f"{one.mean:.3f} {one.interval()} ({one.samples})" if one else ""
                    for one in of_pairs
                ),
            )
        yield table


# -- completions that were scored again ------------------------------------------------

TEXT_WIDTH = 100
LEAST_CHANGE = 1e-6


def rescored_numbers(table: pl.DataFrame) -> dict[str, Any]:
    """Return what samples of `rescore` came to, all of them and of each task.

    Means are of the completions with a score; a change is one of the saved score.
    """
    changed = (pl.col("ours") - pl.col("saved")).abs() >= LEAST_CHANGE
    of_parts = (
        with_parts(table, ["all", "task"])
        .group_by(PART)
        .agg(
            pl.col("item").filter(HAS_SCORE).n_unique().alias("items"),
            SCORE.count().alias("completions"),
            # In order: the last digits of a sum of floats depend on it.
            mean=pl.struct(
                pl.col(name).filter(HAS_SCORE).sort().mean() for name in SCORES
            ),
            changed=changed.filter(HAS_SCORE).sum(),
            without_score=OUTCOME.filter(~HAS_SCORE),
        )
    )
    numbers: dict[str, Any] = {"all": {}, "tasks": {}}
    for row in of_parts.sort(PART).iter_rows(named=True):
        kind = row.pop("kind")
        name = row.pop("name")
        row["without_score"] = dict(Counter(row["without_score"]).most_common())
        numbers |= {"all": row} if kind == "all" else {}
        numbers["tasks"] |= {name: row} if kind == "task" else {}
    return numbers


def rescored_table(numbers: Mapping[str, Any]) -> Table:
    """Return the numbers as a table, all first."""
    headings = ["items", "completions", "saved", "library", "ours", "changed"]
    title = "Saved completions scored again (mean scores)"
    table = NumberTable("task", [*headings, "no score"], title)
    for task, of in {"all": numbers["all"], **numbers["tasks"]}.items():
        means = (of["mean"][name] for name in ("saved", "library", "ours"))
        table.add_row(
            Text(on_one_line(task, TEXT_WIDTH)),
            *map(str, (of["items"], of["completions"])),
            *("-" if mean is None else f"{mean:.3f}" for mean in means),
            *map(str, (of["changed"], sum(of["without_score"].values()))),
        )
    return table
