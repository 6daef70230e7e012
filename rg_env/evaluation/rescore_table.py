"""What came of scoring saved completions again: counts by task, and examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
from rich import box
from rich.text import Text

from rg_env.errors import on_one_line
from rg_env.evaluation.numbers import GrowingTable, text_of
from rg_env.evaluation.samples import Row
from rg_env.reports.fitting_table import FittingTable

SCORES = ("saved", "library", "fixes", "ours")
NAME_WIDTH = 100
TEXT_WIDTH = 100
MOST_REASONS = 10
"""Shown of a task."""

LEAST_CHANGE = 1e-6

COLUMNS: dict[str, Any] = {"task": pl.String, "outcome": pl.String, "reason": pl.String}
COLUMNS |= {"place": pl.String, "item": pl.Int64, "changed": pl.Boolean}
COLUMNS |= dict.fromkeys(SCORES, pl.Float64)
"""Without a score, the last columns are null; with one, `reason` and `place`."""


def _place(row: Row) -> str:
    return on_one_line(f"{row['source']} {row['place']}", 10 * TEXT_WIDTH)


class RescoreTally:
    """Counts rescored samples, and keeps the first `examples` of changed scores.

    Attributes:
        answers: Completions that have a score.
        unscored: Those that have none.
        changed: Those whose score is not the saved one.
    """

    def __init__(self, examples: int) -> None:
        self._most, self._rows = examples, GrowingTable(COLUMNS)
        self.answers = self.unscored = self.changed = 0
        self.examples: list[Row] = []

    def add(self, row: Row) -> None:
        """Count one line of the file of `rescore`."""
        names = [text_of(row[name]) for name in ("task", "outcome")]
        if row["score"] is None:
            self.unscored += 1
            why = (text_of(row["reason"]), text_of(_place(row)))
            self._rows.add([*names, *why, *[None] * (2 + len(SCORES))])
        else:
            self.answers += 1
            scores = [row["scores"][name] for name in SCORES]
            saved, ours = scores[0], scores[-1]
            is_changed = saved is not None and abs(ours - saved) >= LEAST_CHANGE
            self.changed += is_changed
            if is_changed and len(self.examples) < self._most:
                self.examples.append(row)
            item = hash((row["task"], row["question"]))
            self._rows.add([*names, None, None, item, is_changed, *scores])

    def _counts(self) -> Iterator[tuple[str | None, dict[str, Any]]]:
        """Yield the numbers of all, under None, and of each task, sorted."""
        table = self._rows.table()
        tasks = table["task"].unique().sort()
        for task in [None, *tasks]:
            those = table if task is None else table.filter(task=task)
            scored = those.filter(pl.col("ours").is_not_null())
            lost = those.filter(pl.col("ours").is_null())["outcome"]
            yield (
                task,
                {
                    "items": scored["item"].n_unique(),
                    "completions": len(scored),
                    # Sorted, since the last digits of a sum depend on its order.
                    "mean": {name: scored[name].sort().mean() for name in SCORES},
                    "changed": scored["changed"].sum(),
                    "without_score": dict(lost.value_counts(sort=True).iter_rows()),
                },
            )

    def numbers(self) -> dict[str, Any]:
        """Return all counts as plain values."""
        (_, whole), *tasks = self._counts()
        return {"all": whole, "tasks": dict(tasks), "examples": self.examples}

    def table(self) -> FittingTable:
        """Return the counts as a table, all first."""
        table = FittingTable(
            ["task"],
            ["items", "completions", "saved", "library", "ours", "changed"],
            ["items", "completions", "library"],
            title="Saved completions scored again (mean scores)",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
        )
        for task, of in self._counts():
            means = (of["mean"][name] for name in ("saved", "library", "ours"))
            shown = ("-" if mean is None else f"{mean:.3f}" for mean in means)
            cells = map(str, (of["items"], of["completions"], *shown, of["changed"]))
            if task is None:
                table.add_row("all", *cells, style="bold", end_section=True)
            elif of["completions"]:
                table.add_row(Text(on_one_line(task, NAME_WIDTH)), *cells)
        return table

    def lines(self) -> Iterator[str]:
        """Yield what has no score with the reasons, then the examples."""
        if self.unscored:
            total = f"{self.unscored} of {self.unscored + self.answers} completions"
            yield f"without a score, and so not in the means: {total}"
        lost = self._rows.table().filter(pl.col("ours").is_null())
        by = lost.group_by("task", "outcome", "reason", maintain_order=True)
        reasons = by.agg(pl.len(), pl.col("place").first())
        how: Any = {"descending": [False, True], "maintain_order": True}
        reasons = reasons.sort("task", "len", **how)
        for of_task in reasons.partition_by("task", maintain_order=True):
            of = f"of {on_one_line(of_task['task'][0], NAME_WIDTH)}"
            for _, outcome, why, number, place in of_task.head(MOST_REASONS).rows():
                said = f"{outcome}: {on_one_line(why, TEXT_WIDTH)}"
                yield f"no score: {number} {of}, {said} (the first: {place})"
            if number := len(others := of_task[MOST_REASONS:]):
                rest = f"{others['len'].sum()} {of}"
                yield f"no score: {rest}, for {number} other reasons"
        for row in self.examples:
            task = on_one_line(row["task"], NAME_WIDTH)
            scores = " -> ".join(f"{row['scores'][name]:.3f}" for name in SCORES)
            yield f"changed: {task} {scores} ({row['outcome']}) {_place(row)}"
            for key in ("gold_answer", "answer", "saved_answer"):
                yield f"  {key:12} {on_one_line(str(row[key]), TEXT_WIDTH)}"
