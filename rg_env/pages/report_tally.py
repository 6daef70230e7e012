"""The numbers of the report. Of each sample only a few values are kept, and no text."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from rg_env.evaluation.numbers import (
    HAS_SCORE,
    RIGHT,
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
FIGURES: tuple[str, ...]
FIGURES = ("score", "right", "pass", "answered", "variance", "level", "length")
FIGURES += ("truncated",)
"""Means of the samples of a run and part; `pass` is of items and `variance` of groups,
and each of these stands at its first sample."""

MOST_LEVELS = 12
"""That are parts of their own; where there are more, a part is a tenth of the scale."""

MOST_PAIRED = 10
"""The number of runs up to which every two are compared."""

UNKNOWN = ALL = -1
"""In place of a number: what no file says; all runs, or all parts."""

PLACE = ("result", "part")
"""A run and a part: the number of a task, a category or a level."""


def _short(value: float | None) -> float | int:
    if value is None:
        return UNKNOWN
    # A score of less than 1 does not become one of 1.
    rounded = min(round(value, 4), 0.9999) if value < 1 else round(value, 4)
    return int(rounded) if rounded == int(rounded) else rounded


def _with_ends(of: Estimate) -> list[float | int]:
    """Return a mean with its interval, if that says anything."""
    ends = (of.low, of.high) * (not math.isinf(of.high))
    return [*map(_short, (of.mean, *ends))]


def _figures(table: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return samples with `pass` and `variance`, and the completions k of an item."""
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
        """Count one sample of a place and a model."""
        number = self._runs.setdefault(run, len(self._runs))
        self._rows.append(row_of(sample, number))
        answer, versions = sample.row.get("answer"), sample.row.get("versions")
        self._previews.append(answer and answer[:PREVIEW_CHARS])
        if isinstance(versions, dict):
            pairs = (f"{name} {of}" for name, of in sorted(versions.items()))
            self._versions[", ".join(pairs)] = None

    def overview(self, names: Mapping[Place, str]) -> dict[str, Any]:
        """Return what the page shows before anything is chosen."""
        table = table_of(self._rows)
        self._rows.clear()
        unit = "characters" if table["tokens"].null_count() else "tokens"
        # Of a task all of whose samples are of one category.
        table = self._table = table.with_columns(
            pl.col(unit).alias("length"),
            pl.col("category").last().over("task"),
            right=RIGHT,
        )
        self._tasks = {name: n for n, name in enumerate(dict.fromkeys(table["task"]))}
        words = dict.fromkeys([*OUTCOMES, *table["outcome"]])
        self._outcomes = {word: n for n, word in enumerate(words)}
        categories = dict(table.select("task", "category").unique().iter_rows())
        figures, k = _figures(table)
        kinds, parts = self._parts(table)
        cells, differences = list[Any](), list[Any]()
        runs = range(len(self._runs))
        pairs = [*itertools.combinations(runs, 2)] * (len(runs) <= MOST_PAIRED)
        for part in parts:
            of_part = figures.with_columns(part.alias("part")).drop_nulls("part")
            for run in (pl.col("result"), pl.lit(ALL)):
                cells += _cells(of_part.with_columns(run.alias("result")))
            for a, b in pairs:
                both = of_part.filter(pl.col("result").is_in([a, b]))
                for (number,), pair in paired(both, a, b, ["part"]).items():
                    if of := pair.by_item:
                        differences.append([a, b, number, *_with_ends(of), of.samples])
        every = self._of_runs(figures)
        if len(self._runs) > 1:
            every += self._of_runs(figures.with_columns(result=pl.lit(ALL)))
        return {
            "samples": len(self),
            "unit": unit,
            "k": k,
            "tasks": [[name, categories[name]] for name in self._tasks],
            "parts": kinds,
            "outcomes": [[w, OUTCOMES.get(w, "")] for w in self._outcomes],
            "figures": ["samples", *FIGURES, "low", "high"],
            "cells": sorted(cells),
            "differences": differences,
            "runs": [
                {"name": name if not model or model in name else f"{model}, {name}"}
                | every[number]
                for (at, model), number in self._runs.items()
                for name in [names[at]]
            ],
            "all": every[-1],
            "versions": [*self._versions],
        }

    def _parts(self, table: pl.DataFrame) -> tuple[list[list[Any]], list[pl.Expr]]:
        """Return the categories and levels, whose numbers follow those of the tasks.

        The expressions give the number of each kind of part that a sample is of. A
        level is named by its lowest and its highest value.
        """
        names = sorted({*table["category"]} - {""})
        levels = table["level"].drop_nulls().unique().sort().to_list()
        ends = {level: (level, level) for level in levels}
        if len(levels) > MOST_LEVELS:
            # 1 - 0.9 is a little less than 0.1.
            tenths = {level: min(9, int(level * 10 + 1e-9)) for level in levels}
            ends = {level: (k / 10, (k + 1) / 10) for level, k in tenths.items()}
        kinds = [["category", name] for name in names]
        kinds += [["level", *of] for of in dict.fromkeys(ends.values())]
        first = len(self._tasks)
        numbers: dict[str, dict[Any, int]] = {
            "task": self._tasks,
            "category": {
                name: first + kinds.index(["category", name]) for name in names
            },
            "level": {v: first + kinds.index(["level", *of]) for v, of in ends.items()},
        }
        how: Any = {"default": None, "return_dtype": pl.Int64}
        given = (pl.col(k).replace_strict(of, **how) for k, of in numbers.items() if of)
        return kinds, [pl.lit(ALL, pl.Int64), *given]

    def _of_runs(self, table: pl.DataFrame) -> list[dict[str, Any]]:
        """Return the numbers of each run, with their intervals."""
        by, of_length = ["result"], dict[str, Any](within=(0.0, math.inf))
        figures = {
            name: estimates(
                table, pl.col(name), by, **(of_length if name == "length" else {})
            )
            for name in FIGURES
        }
        shares = {
            number: estimates(table, pl.col("outcome") == word, by)
            for word, number in self._outcomes.items()
        }
        counts = table.group_by(by).agg(pl.len(), pl.col("item").n_unique()).sort(by)
        return [
            {
                "samples": number,
                "items": items,
                "figures": [
                    of and _with_ends(of)
                    for of in (figures[name].get((run,)) for name in FIGURES)
                ],
                "outcomes": {
                    word: [round(number * of.mean), *_with_ends(of)[1:]]
                    for word, share in shares.items()
                    if (of := share.get((run,))) and of.mean
                },
            }
            for run, number, items in counts.rows() or [(ALL, 0, 0)]
        ]

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


def _cells(table: pl.DataFrame) -> Iterator[list[float | int]]:
    """Yield run, part, figures and interval of every part but the whole."""
    scores = estimates(table, by=PLACE)
    means = table.group_by(PLACE).agg(pl.len(), *map(pl.mean, FIGURES))
    for run, part, number, *values in means.iter_rows():
        of = scores.get((run, part))
        ends = (of.low, of.high) if of else (None, None)
        if part != ALL:
            yield [run, part, number, *map(_short, (*values, *ends))]
