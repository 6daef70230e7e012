"""Saved completions that were scored again: their file, and what came of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
from rich import box
from rich.text import Text

from rg_env.errors import SettingError, on_one_line, shown
from rg_env.evaluation.numbers import GrowingTable, text_of
from rg_env.evaluation.samples import Row, Sample
from rg_env.reports.fitting_table import FittingTable
from rg_env.rollouts.json_encoding import readable
from rg_env.rollouts.line_file import LineFile
from rg_env.scoring.score import UNSCORED

# -- the file --------------------------------------------------------------------------

WRITTEN = {"source", "place", "task", "question", "score", "scores"}
WRITTEN |= {"outcome", "reasoning_gym"}

TRIED_AGAIN = frozenset({"timeout", UNSCORED})
"""Outcomes of samples that may have a score the next time, and are not written."""


class RescoredFile:
    """Samples that were scored again; each is on disk when `write` returns.

    Args:
        path: The file; what it holds stays, and it is continued where it ended.

    Raises:
        OSError: The disk refuses it, or another process is writing it.
    """

    def __init__(self, path: Path, version: str) -> None:
        self._path, self._version = path, version
        self._file = LineFile(path)
        self._done: set[tuple[str, str]] = set()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield what it holds; to be read to its end before anything is written.

        Raises:
            SettingError: It holds something else, or was made with another library.
        """
        self._file.end = 0
        with self._path.open("rb") as lines:
            for number, line in enumerate(lines):
                is_whole = line.endswith(b"\n")
                if number and not is_whole:
                    return  # torn by a kill; the next line takes its place
                try:
                    row = json.loads(line) if is_whole else {}  # perhaps not ours
                    version = row.keys() >= WRITTEN and row["reasoning_gym"]
                except (ValueError, RecursionError, AttributeError):
                    version = None
                if version != self._version:
                    kind = (
                        f"of reasoning-gym {shown(version)}" if version else "foreign"
                    )
                    what = f"line {number + 1} of {shown(str(self._path))} is {kind}"
                    raise SettingError(f"--out: {what}; choose another file")
                self._file.end += len(line)
                self._done.add((row["source"], row["place"]))
                yield row

    def missing(self, samples: Iterable[Sample]) -> list[Sample]:
        """Return the samples that it does not hold."""
        places = ((s, (s.row["source"], s.row["place"])) for s in samples)
        return [sample for sample, place in places if place not in self._done]

    def write(self, samples: Iterable[Sample]) -> None:
        """Append samples, but those that are tried again.

        Raises:
            OSError: The disk does not take them; no part of a line is in the file.
        """
        for sample in samples:
            if sample.score is not None or sample.outcome not in TRIED_AGAIN:
                self._file.append(readable(sample.row) + b"\n")

    def close(self) -> None:
        """Close the file; remove it if it holds nothing."""
        self._file.close()


# -- counts by task, and examples ------------------------------------------------------

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

OURS = pl.col("ours")


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
            return
        self.answers += 1
        scores = [row["scores"][name] for name in SCORES]
        saved, ours = scores[0], scores[-1]
        is_changed = saved is not None and abs(ours - saved) >= LEAST_CHANGE
        self.changed += is_changed
        if is_changed and len(self.examples) < self._most:
            self.examples.append(row)
        item = hash((row["task"], row["question"]))
        self._rows.add([*names, None, None, item, is_changed, *scores])

    def _counts(self) -> dict[str | None, dict[str, Any]]:
        """Return the numbers of all, under None, and of each task, sorted."""
        table = self._rows.table()
        both = pl.concat([table.with_columns(task=pl.lit(None, pl.String)), table])
        counts = both.group_by("task").agg(
            items=pl.col("item").drop_nulls().n_unique(),
            completions=OURS.count(),
            # Sorted, since the last digits of a sum depend on its order.
            mean=pl.struct(pl.col(name).sort().mean() for name in SCORES),
            changed=pl.col("changed").sum(),
            lost=pl.col("outcome").filter(OURS.is_null()).value_counts(sort=True),
        )
        by_task: dict[str | None, dict[str, Any]] = {}
        for task, *values, lost in counts.sort("task", nulls_last=False).iter_rows():
            outcomes = {of["outcome"]: of["count"] for of in lost}
            names = ("items", "completions", "mean", "changed", "without_score")
            by_task[task] = dict(zip(names, [*values, outcomes], strict=True))
        return by_task

    def numbers(self) -> dict[str, Any]:
        """Return all counts as plain values."""
        tasks = self._counts()
        return {"all": tasks.pop(None), "tasks": tasks, "examples": self.examples}

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
        for task, of in self._counts().items():
            means = (of["mean"][name] for name in ("saved", "library", "ours"))
            scores = ("-" if mean is None else f"{mean:.3f}" for mean in means)
            cells = map(str, (of["items"], of["completions"], *scores, of["changed"]))
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
        lost = self._rows.table().filter(OURS.is_null())
        by = lost.group_by("task", "outcome", "reason", maintain_order=True)
        reasons = by.agg(pl.len(), pl.col("place").first())
        how: Any = {"descending": [False, True], "maintain_order": True}
        reasons = reasons.sort("task", "len", **how)
        for of_task in reasons.partition_by("task", maintain_order=True):
            of = f"of {on_one_line(of_task['task'][0], NAME_WIDTH)}"
            for _, outcome, why, number, place in of_task.head(MOST_REASONS).rows():
                reason = f"{outcome}: {on_one_line(why, TEXT_WIDTH)}"
                yield f"no score: {number} {of}, {reason} (the first: {place})"
            if number := len(others := of_task[MOST_REASONS:]):
                rest = f"{others['len'].sum()} {of}"
                yield f"no score: {rest}, for {number} other reasons"
        for row in self.examples:
            task = on_one_line(row["task"], NAME_WIDTH)
            scores = " -> ".join(f"{row['scores'][name]:.3f}" for name in SCORES)
            yield f"changed: {task} {scores} ({row['outcome']}) {_place(row)}"
            for key in ("gold_answer", "answer", "saved_answer"):
                yield f"  {key:12} {on_one_line(str(row[key]), TEXT_WIDTH)}"
