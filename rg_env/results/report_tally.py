"""The numbers of the report, over a table of its samples. Pure.

The column `result` is the number of a run.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from rg_env.results.estimates import (
    HAS_SCORE,
    PART,
    RIGHT,
    SCORE,
    Estimate,
    best_of,
    estimates,
    with_parts,
)
from rg_env.reward.score import OUTCOMES

# 1 - 0.9 is less than 0.1.
TENTH = (pl.col("level") * 10 + 1e-9).floor().clip(0, 9) / 10
WITHIN = dict.fromkeys(("tokens", "characters"), (0.0, math.inf))
"""Values that a figure can have, for one that is not in [0, 1]."""


Part = dict[str, Any]
"""A run, or one of its categories, tasks or levels: `result`, `kind`, `name`, the
numbers of `rollouts` and `items`, and `figures`, name to estimate."""


def completions_of_most_items(table: pl.DataFrame) -> int:
    """Return how many completions of an item every run has, for most of its items.

    Runs with one completion of an item do not count.
    """
    sizes = table.filter(HAS_SCORE).group_by("result", "item", maintain_order=True)
    by_run = sizes.len().partition_by("result")
    modes = [statistics.mode(of_run["len"]) for of_run in by_run]
    return min((mode for mode in modes if mode > 1), default=1)


def _figures(table: pl.DataFrame) -> dict[str, pl.Expr]:
    """Return each figure as a value of samples, the mean of which is shown.

    The value of an item, or of a group, stands at its first sample alone.
    """
    item = ["result", "item"]
    group = [*item, "group"]

    def at_first(of: Sequence[str], value: pl.Expr) -> pl.Expr:
        return pl.when(HAS_SCORE & (HAS_SCORE.cum_sum().over(of) == 1)).then(value)

    k = completions_of_most_items(table)
    passed = best_of(RIGHT, k).over(item)
    differ = SCORE.drop_nulls().n_unique().over(group) > 1
    in_groups = pl.when(SCORE.count().over(group) > 1).then(differ)
    unit = "characters" if table["tokens"].null_count() else "tokens"
    return {
        "score": SCORE,
        "right": RIGHT,
        **({f"pass@{k}": at_first(item, passed)} if k > 1 else {}),
        "answered": pl.col("answered"),
        "with variance": at_first(group, in_groups),
        "truncated": pl.col("truncated"),
        "level": pl.col("level"),
        unit: pl.col(unit),
    }


def parts_of_runs(table: pl.DataFrame) -> list[Part]:
    """Return the parts of all runs, in the order of their names."""
    figures = _figures(table)
    table = table.with_columns(
        value.alias(f"of {name}") for name, value in figures.items()
    )
    level = pl.format("{} to {}", TENTH.round(1), (TENTH + 0.1).round(1))
    levels = table.drop_nulls("level").with_columns(kind=pl.lit("level"), name=level)
    samples = pl.concat([with_parts(table), levels])
    by = ["result", *PART]
    means = {
        name: estimates(samples, pl.col(f"of {name}"), by, within=WITHIN.get(name))
        for name in figures
    }
    counts = samples.group_by(by).agg(
        rollouts=pl.len(), items=pl.col("item").n_unique()
    )
    parts = list(counts.sort("name", "result").iter_rows(named=True))
    for part in parts:
        key = tuple(part[name] for name in by)
        part["figures"] = {name: of[key] for name, of in means.items() if key in of}
    return parts


def outcomes_of_runs(table: pl.DataFrame) -> Iterator[tuple[int, str, Estimate]]:
    """Yield run, outcome and its share of the rollouts, the best outcome first."""
    for word in dict.fromkeys([*OUTCOMES, *table["outcome"]]):
        shares = estimates(table, pl.col("outcome") == word, ["result"])
        for (run,), share in shares.items():
            if share.mean:
                yield run, word, share
