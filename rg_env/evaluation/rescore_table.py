"""What came of scoring saved completions again: counts by task, and examples."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

from rich import box
from rich.text import Text

from rg_env.errors import on_one_line
from rg_env.evaluation.rescoring import CAUSES
from rg_env.evaluation.samples import Row
from rg_env.reports.fitting_table import FittingTable

SCORES = ("saved", "library", "fixes", "ours")
NAME_WIDTH = 100
TEXT_WIDTH = 100
MOST_REASONS = 10
"""Shown of a task."""


def _place(row: Row) -> str:
    return on_one_line(f"{row['source']} {row['place']}", 10 * TEXT_WIDTH)


@dataclasses.dataclass
class TaskCounts:
    """The counts of one task, or of all.

    Attributes:
        items: Those that were made again, as hashes of their questions.
        answers: Completions that have a score.
        saved: Of these, those that had a score before.
        sums: Names of `SCORES` to the exact sum of these scores, which is the same in
            whatever order they come.
        changed: Answers that have another score now.
        causes: Cause to the scores that it changed; several may change one.
        unscored: Outcome and reason to the completions without a score.
        places: The same to where the first of these stands.
    """

    items: set[int] = dataclasses.field(default_factory=set)
    answers: int = 0
    saved: int = 0
    sums: dict[str, Fraction] = dataclasses.field(
        default_factory=lambda: dict.fromkeys(SCORES, Fraction())
    )
    changed: int = 0
    causes: Counter[str] = dataclasses.field(default_factory=Counter)
    unscored: Counter[tuple[str, str]] = dataclasses.field(default_factory=Counter)
    places: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Count one line of the file of `rescore`."""
        if row["score"] is None:
            why = row["outcome"], row["reason"]
            self.unscored[why] += 1
            self.places.setdefault(why, _place(row))
            return
        self.items.add(hash((row["task"], row["question"])))
        self.answers += 1
        self.saved += row["scores"]["saved"] is not None
        for name in SCORES:
            self.sums[name] += Fraction(row["scores"][name] or 0.0)
        self.changed += bool(row["changes"])
        self.causes.update(row["changes"])

    def mean(self, score: str) -> float | None:
        """Return the mean of a score, None where there is none."""
        number = self.saved if score == "saved" else self.answers
        return float(self.sums[score] / number) if number else None

    @property
    def outcomes(self) -> Counter[str]:
        """Of the completions without a score."""
        outcomes: Counter[str] = Counter()
        for (outcome, _), number in self.unscored.items():
            outcomes[outcome] += number
        return outcomes

    def numbers(self) -> dict[str, Any]:
        """Return the counts as plain values."""
        return {
            "items": len(self.items),
            "completions": self.answers,
            "mean": {score: self.mean(score) for score in SCORES},
            "changed": self.changed,
            "causes": self.causes,
            "without_score": self.outcomes,
        }

    def cells(self) -> tuple[str, ...]:
        """Return a row of the table."""
        means = [self.mean(score) for score in ("saved", "library", "ours")]
        shown = ("-" if mean is None else f"{mean:.3f}" for mean in means)
        causes = [f"{cause} {n}" for cause in CAUSES if (n := self.causes[cause])]
        why = f"{self.changed}: {', '.join(causes)}" if causes else "-"
        return str(len(self.items)), str(self.answers), *shown, why


class RescoreTally:
    """Counts rescored samples, and keeps the first `examples` of each cause."""

    def __init__(self, examples: int) -> None:
        self._most = examples
        self.all = TaskCounts()
        self.by_task: defaultdict[str, TaskCounts] = defaultdict(TaskCounts)
        self.examples: dict[str, list[Row]] = {cause: [] for cause in CAUSES}

    def add(self, row: Row) -> None:
        """Count one line of the file of `rescore`."""
        self.all.add(row)
        self.by_task[row["task"]].add(row)
        for cause in row["changes"]:
            if len(self.examples[cause]) < self._most:
                self.examples[cause].append(row)

    def numbers(self) -> dict[str, Any]:
        """Return all counts as plain values."""
        tasks = {task: self.by_task[task].numbers() for task in sorted(self.by_task)}
        return {"all": self.all.numbers(), "tasks": tasks, "examples": self.examples}

    def table(self) -> FittingTable:
        """Return the counts as a table, all first."""
        title = "Saved completions scored again (mean scores)"
        table = FittingTable(
            ["task"],
            ["items", "completions", "saved", "library", "ours"],
            ["items", "completions", "library"],
            title=title,
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
        )
        table.add_column("changed, by")
        table.add_row("all", *self.all.cells(), style="bold", end_section=True)
        for task, counts in sorted(self.by_task.items()):
            if counts.answers:
                table.add_row(Text(on_one_line(task, NAME_WIDTH)), *counts.cells())
        return table

    def lines(self) -> list[str]:
        """Return what has no score with the reasons, then the examples."""
        missing = self.all.unscored.total()
        total = f"{missing} of {missing + self.all.answers} completions"
        lines = [f"without a score, and so not in the means: {total}"] * bool(missing)
        for task, counts in sorted(self.by_task.items()):
            of = f"of {on_one_line(task, NAME_WIDTH)}"
            for why, number in counts.unscored.most_common(MOST_REASONS):
                outcome, reason = why[0], on_one_line(why[1], TEXT_WIDTH)
                first = f"the first: {counts.places[why]}"
                lines.append(f"no score: {number} {of}, {outcome}: {reason} ({first})")
            others = counts.unscored.most_common()[MOST_REASONS:]
            if others:
                of = f"{sum(number for _, number in others)} {of}"
                lines.append(f"no score: {of}, for {len(others)} other reasons")
        for cause, rows in self.examples.items():
            for row in rows:
                task = on_one_line(row["task"], NAME_WIDTH)
                scores = " -> ".join(f"{row['scores'][name]:.3f}" for name in SCORES)
                became = row["outcome"]
                lines.append(f"{cause}: {task} {scores} ({became}) {_place(row)}")
                lines += [
                    f"  {key:12} {on_one_line(str(row[key]), TEXT_WIDTH)}"
                    for key in ("gold_answer", "answer", "saved_answer")
                ]
        return lines
