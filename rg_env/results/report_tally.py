"""The numbers of the report, over a table of its samples. Pure.

`result` is the number of a run. A part is the number of a task, then of a category,
then of a tenth of the levels.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from rg_env.results.numbers import (
    HAS_SCORE,
    RIGHT,
    SCORE,
    Estimate,
    best_of,
    estimates,
    paired,
)
from rg_env.reward.score import OUTCOMES

FIGURES: tuple[str, ...]
FIGURES = ("score", "right", "pass", "answered", "variance", "level", "length")
FIGURES += ("truncated",)
"""Means of the samples of a run and part; `pass` is of items and `variance` of groups,
and each of these stands at its first sample."""

# The number of runs up to which every two are compared.
MOST_PAIRED = 10

# In place of a number: what no file says; all runs, or all parts.
UNKNOWN = ALL = -1

TENTH = (pl.col("level") * 10 + 1e-9).floor().clip(0, 9)  # 1 - 0.9 is less than 0.1


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


def _numbers(values: Iterable[Any]) -> dict[Any, int]:
    return {value: number for number, value in enumerate(dict.fromkeys(values))}


class ReportTally:
    """What the page shows of a table of samples."""

    def __init__(self, table: pl.DataFrame) -> None:
        self._tasks = _numbers(table["task"])
        self._outcomes = _numbers([*OUTCOMES, *table["outcome"]])
        self._unit = "characters" if table["tokens"].null_count() else "tokens"
        item, group = ["result", "item"], ["result", "item", "group"]
        sizes = table.filter(HAS_SCORE).group_by(item, maintain_order=True).len()
        # As many as every run has of most of its items.
        modes = (statistics.mode(of["len"]) for of in sizes.partition_by("result"))
        self._k = k = min((k for k in modes if k > 1), default=1)

        def first(by: Sequence[str]) -> pl.Expr:
            return HAS_SCORE & (HAS_SCORE.cum_sum().over(by) == 1)

        differ = SCORE.drop_nulls().n_unique().over(group) > 1
        passed = best_of(RIGHT, k).over(item) if k > 1 else pl.lit(None, pl.Float64)
        self._table = table.with_columns(
            pl.col(self._unit).alias("length"),
            # Of a task all of whose samples are of one category.
            pl.col("category").last().over("task"),
            pl.when(first(item)).then(passed).alias("pass"),
            right=RIGHT,
            variance=pl.when(first(group), SCORE.count().over(group) > 1).then(differ),
        )

    def overview(self, names: Sequence[str]) -> dict[str, Any]:
        """Return what the page shows before anything is chosen, of runs by number."""
        table = self._table
        categories = dict(table.select("task", "category").unique().iter_rows())
        kinds, parts = self._parts()
        both = pl.concat([table, table.with_columns(result=pl.lit(ALL, pl.Int64))])
        pairs = [*itertools.combinations(range(len(names)), 2)]
        cells, differences = list[Any](), list[Any]()
        for part in parts:
            of_part = both.with_columns(part=part).drop_nulls("part")
            cells += _cells(of_part)
            for a, b in pairs if len(names) <= MOST_PAIRED else []:
                for (number,), pair in paired(of_part, a, b, ["part"]).items():
                    if of := pair["by_item"]:
                        differences.append([a, b, number, *_with_ends(of), of.samples])
        runs = self._of_runs(both)
        return {
            "samples": len(table),
            "unit": self._unit,
            "k": self._k,
            "tasks": [[name, categories[name]] for name in self._tasks],
            "parts": kinds,
            "outcomes": [[word, OUTCOMES.get(word, "")] for word in self._outcomes],
            "figures": ["samples", *FIGURES, "low", "high"],
            "cells": sorted(cells),
            "differences": differences,
            "runs": [{"name": name} | runs[n] for n, name in enumerate(names)],
            "all": runs.get(ALL, {"samples": 0, "figures": [], "outcomes": {}}),
        }

    def _parts(self) -> tuple[list[list[Any]], list[pl.Expr]]:
        """Return the categories and levels, and the numbers of the parts of a sample.

        A level is named by its ends.
        """
        categories = sorted({*self._table["category"]} - {""})
        tenths = self._table.select(TENTH.drop_nulls().unique().sort()).to_series()
        kinds: list[list[Any]] = [["category", name] for name in categories]
        kinds += [["level", k / 10, (k + 1) / 10] for k in tenths]
        first = len(self._tasks)
        numbers: list[tuple[pl.Expr, dict[Any, int]]] = [
            (pl.col("task"), self._tasks),
            (pl.col("category"), {c: first + n for n, c in enumerate(categories)}),
            (TENTH, {k: first + len(categories) + n for n, k in enumerate(tenths)}),
        ]
        how: Any = {"default": None, "return_dtype": pl.Int64}
        given = (value.replace_strict(of, **how) for value, of in numbers if of)
        return kinds, [pl.lit(ALL, pl.Int64), *given]

    def _of_runs(self, table: pl.DataFrame) -> dict[int, dict[str, Any]]:
        """Return the numbers of each run, with their intervals."""
        by, length = ["result"], (0.0, math.inf)
        figures = [
            estimates(table, pl.col(n), by, within=length if n == "length" else None)
            for n in FIGURES
        ]
        shares = {
            number: estimates(table, pl.col("outcome") == word, by)
            for word, number in self._outcomes.items()
        }
        counts = table.group_by(by).agg(pl.len(), pl.col("item").n_unique())
        return {
            run: {
                "samples": samples,
                "items": items,
                "figures": [
                    (of := one.get((run,))) and _with_ends(of) for one in figures
                ],
                "outcomes": {
                    word: [round(samples * of.mean), *_with_ends(of)[1:]]
                    for word, share in shares.items()
                    if (of := share[run,]).mean
                },
            }
            for run, samples, items in counts.iter_rows()
        }

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
        }


def _cells(table: pl.DataFrame) -> Iterator[list[float | int]]:
    """Yield run, part, figures and interval of every part but the whole."""
    by = ["result", "part"]
    scores = estimates(table, by=by)
    means = table.group_by(by).agg(pl.len(), *map(pl.mean, FIGURES))
    for run, part, number, *values in means.iter_rows():
        of = scores.get((run, part))
        ends = (of.low, of.high) if of else (None, None)
        if part != ALL:
            yield [run, part, number, *map(_short, (*values, *ends))]
