"""The numbers of the report. Of each sample only a few values are kept, and no text."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

import polars as pl

from rg_env.evaluation.numbers import (
    HAS_SCORE,
    SCORE,
    Estimate,
    best_of,
    estimates,
    paired,
    row_of,
    table_of,
)
from rg_env.evaluation.samples import Sample
from rg_env.pages.runs import Place
from rg_env.scoring.score import OUTCOMES

PREVIEW_CHARS = 48
BINS = 20
"""Bins of a histogram of scores or levels; lengths have two for a power of two."""

FIGURES: tuple[str, ...]
FIGURES = ("score", "right", "pass", "answered", "variance", "level", "length")
FIGURES += ("truncated",)
"""Means of the samples of a run and part; `pass` is of items and `variance` of groups,
and each of these stands at its first sample."""

HISTOGRAMS = {
    **{name: (pl.col(name) * BINS + 1e-9) for name in ("score", "level")},
    "length": 2 * pl.col("length").clip(1).log(2) + 1e-9,
}
"""Names to the numbers of bins, rounded down."""

MOST_LEVELS = 12
"""That are parts of their own; where there are more, a part is a tenth of the scale."""

UNKNOWN = ALL = -1
"""In place of a number: what no file says; all runs, or all parts."""

PLACE = ("result", "part")
"""A run and a part: the number of a task, a category or a level."""

Numbers = dict[str, Any]
T = TypeVar("T")


def numbered(names: Iterable[T]) -> dict[T, int]:
    """Return numbers for names, in the order in which they come."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _short(value: float | None) -> float | int:
    if value is None:
        return UNKNOWN
    # A score of less than 1 does not become one of 1.
    rounded = min(round(value, 4), 0.9999) if value < 1 else round(value, 4)
    return int(rounded) if rounded == int(rounded) else rounded


def _ends(found: Estimate) -> list[float | int]:
    """Return the ends of an interval; none of one that says nothing."""
    ends = (found.low, found.high)
    return [] if math.isinf(found.high) else [*map(_short, ends)]


def _named(name: str, model: str | None) -> str:
    return name if not model or model in name else f"{model}, {name}"


def _figures(table: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return samples with `pass`, `variance` and the category of their task, and k."""
    scored, item = table.filter(HAS_SCORE), ["result", "item"]
    # As many as every run has of most of its items.
    sizes = scored.group_by(item, maintain_order=True).len()
    modes = (statistics.mode(of["len"]) for of in sizes.partition_by("result"))
    k = min((k for k in modes if k > 1), default=1)
    group, place = [*item, "group"], pl.int_range(pl.len())
    is_first, size = place.over(group) == 0, pl.len().over(group)
    differ = (SCORE.n_unique().over(group) > 1).cast(pl.Float64)
    passed = best_of(pl.col("right"), k).over(item) if k > 1 else pl.lit(None)
    scored = scored.with_columns(
        pl.when(is_first & (size > 1)).then(differ).alias("variance"),
        pl.when(place.over(item) == 0).then(passed).alias("pass"),
    )
    parts = [scored, table.filter(~HAS_SCORE)]
    return pl.concat(parts, how="diagonal_relaxed"), k


def _histogram(table: pl.DataFrame, bins: pl.Expr) -> list[int]:
    """Return how many samples are in each bin."""
    numbers = table.select(bins.floor().cast(pl.Int64)).to_series().drop_nulls()
    counts = dict(numbers.value_counts().iter_rows())
    return [counts.get(k, 0) for k in range(max(counts, default=-1) + 1)]


def _cells(
    scores: Mapping[Any, Estimate], means: Mapping[Any, Sequence[Any]]
) -> Iterator[list[float | int]]:
    """Yield run, part, figures and interval of every part but the whole."""
    for (run, part), (number, *values) in sorted(means.items()):
        if part != ALL:
            score = scores.get((run, part))
            ends = _ends(score) if score else (UNKNOWN, UNKNOWN)
            yield [run, part, number, *map(_short, values), *ends]


class ReportTally:
    """Counts samples for the overview and keeps their columns for the reader."""

    def __init__(self) -> None:
        self._runs: dict[tuple[Place, str | None], int] = {}
        self._versions: dict[str, None] = {}
        self._rows, self._previews = list[Sequence[Any]](), list[str | None]()

    def __len__(self) -> int:
        """Return how many samples there are."""
        return len(self._previews)

    def add(self, sample: Sample, run: tuple[Place, str | None]) -> None:
        """Count one sample of a run, which is a place and a model."""
        number = self._runs.setdefault(run, len(self._runs))
        self._rows.append(row_of(sample, number))
        answer, versions = sample.row.get("answer"), sample.row.get("versions")
        begin = answer[:PREVIEW_CHARS] if isinstance(answer, str) else None
        self._previews.append(begin)
        if isinstance(versions, dict):
            pairs = sorted(versions.items())
            said = ", ".join(f"{name} {is_at}" for name, is_at in pairs)
            self._versions[said] = None

    def overview(self, names: Mapping[Place, str]) -> Numbers:
        """Return what the page shows before anything is chosen.

        Args:
            names: Of the places of runs.
        """
        table = table_of(self._rows)
        unit = "characters" if table["tokens"].null_count() else "tokens"
        # Of a task all of whose samples are of one category.
        self._table = table.with_columns(
            pl.col(unit).alias("length"), pl.col("category").last().over("task")
        )
        self._tasks = numbered(table["task"])
        self._outcomes = numbered([*OUTCOMES, *table["outcome"]])
        figures, k = _figures(self._table)
        parts, categories = self._parts(figures)
        scores: dict[Any, Estimate] = {}
        means: dict[Any, list[Any]] = {}
        differences: dict[Any, Any] = {}
        for part in parts:
            for run in (pl.col("result"), pl.lit(ALL)):
                those = figures.with_columns(run.alias("result"), part.alias("part"))
                those = those.drop_nulls("part")
                scores |= estimates(those, by=PLACE)
                each = those.group_by(PLACE).agg(pl.len(), *map(pl.mean, FIGURES))
                means |= {(run, of): row for run, of, *row in each.iter_rows()}
            if len(self._runs) == 2:
                those = figures.with_columns(part.alias("part")).drop_nulls("part")
                differences |= paired(those, 0, 1, ["part"])
        every = self._of_runs(figures)
        if len(self._runs) > 1:
            every += self._of_runs(figures.with_columns(result=pl.lit(ALL)))
        runs = [
            {"name": _named(names[at], model), **every[number]}
            for (at, model), number in self._runs.items()
        ]
        return {
            "samples": len(self),
            "unit": unit,
            "k": k,
            "tasks": [[name, categories[name]] for name in self._tasks],
            "parts": [*self._others],
            "outcomes": [[w, OUTCOMES.get(w, "")] for w in self._outcomes],
            "figures": ["samples", *FIGURES, "low", "high"],
            "cells": [*_cells(scores, means)],
            "differences": [
                [*map(_short, (part, it.mean, it.low, it.high, it.samples))]
                for (part,), of in differences.items()
                if (it := of.by_item)
            ],
            "runs": runs,
            "all": every[-1],
            "versions": [*self._versions],
        }

    def _parts(self, table: pl.DataFrame) -> tuple[list[pl.Expr], dict[str, str]]:
        """Return what numbers the parts of samples; and the categories of tasks.

        Categories and levels follow the tasks. A level is named by its lowest and its
        highest value.
        """
        categories = dict(table.select("task", "category").unique().iter_rows())
        names = sorted({*categories.values()} - {""})
        parts: dict[str, dict[Any, Any]] = {"category": {c: (c,) for c in names}}
        levels = table["level"].drop_nulls().unique().sort().to_list()
        # 1 - 0.9 is a little less than 0.1.
        tenths = {level: min(9, int(level * 10 + 1e-9)) for level in levels}
        parts["level"] = {v: (k / 10, (k + 1) / 10) for v, k in tenths.items()}
        if len(levels) <= MOST_LEVELS:
            parts["level"] = {level: (level, level) for level in levels}
        for kind, of in parts.items():
            parts[kind] = {value: (kind, *ends) for value, ends in of.items()}
        self._others = numbered(chain(*(of.values() for of in parts.values())))
        found, first = [pl.lit(ALL, pl.Int64)], len(self._tasks)
        numbers: dict[str, dict[Any, int]] = {"task": self._tasks}
        for kind, of in parts.items():
            numbers[kind] = {v: self._others[part] + first for v, part in of.items()}
        how: Any = {"default": None, "return_dtype": pl.Int64}
        found += [
            pl.col(k).replace_strict(of, **how) for k, of in numbers.items() if of
        ]
        return found, categories

    def _of_runs(self, table: pl.DataFrame) -> list[Numbers]:
        """Return the numbers of each run, with their intervals."""
        by, length = ["result"], dict[str, Any](within=(0.0, math.inf))
        figures = {
            name: estimates(
                table, pl.col(name), by, **(length if name == "length" else {})
            )
            for name in FIGURES
        }
        shares = {
            number: estimates(table, pl.col("outcome") == word, by)
            for word, number in self._outcomes.items()
        }
        counts = table.group_by(by).agg(pl.len(), pl.col("item").n_unique()).sort(by)
        found = []
        for run, number, items in counts.rows() or [(ALL, 0, 0)]:
            of_run = table.filter(result=run)
            of = [figures[name].get((run,)) for name in FIGURES]
            outcomes = {word: share.get((run,)) for word, share in shares.items()}
            found.append(
                {
                    "samples": number,
                    "items": items,
                    "figures": [it and [_short(it.mean), *_ends(it)] for it in of],
                    "outcomes": {
                        word: [round(number * it.mean), *_ends(it)]
                        for word, it in outcomes.items()
                        if it and it.mean
                    },
                    "histograms": {
                        name: _histogram(of_run, bins)
                        for name, bins in HISTOGRAMS.items()
                    },
                }
            )
        return found

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns of all samples, which the reader filters."""
        table = self._table.with_row_index("first")
        first = table.select(pl.col("first").min().over("item")).to_series()
        return {
            "run": table["result"].to_list(),
            "task": [self._tasks[name] for name in table["task"]],
            "item": (first.rank("dense") - 1).to_list(),
            "outcome": [self._outcomes[word] for word in table["outcome"]],
            **{
                name: [None if v is None else _short(v) for v in table[name]]
                for name in ("score", "level", "step", "length")
            },
            "preview": self._previews,
        }
