"""Every number of saved completions, over one table with a row for each. Pure.

Samples of one item, or items of one task, are alike: an interval that takes them for
independent is too narrow. The standard error is the clustered one, as "Adding error
bars to evals" (Miller, 2024) has it, with the factor C / (C - 1) for few clusters C.
Each task is a stratum, since these are the tasks: the interval does not include the
differences between their means. Tasks with only one item together form one stratum.

An interval of a mean is Wilson's at 95 %, for as many independent samples as would have
that standard error: it stays in [0, 1]. Where all scores are equal it is that of C
samples. One of a difference is Student's. Both have as many degrees of freedom as there
are clusters more than strata.

Importing polars takes half a second: a command that may do without numbers imports
this module, and what uses it, where it needs them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from rg_env.results.samples import NOT_USED, Sample, finite

Z_95 = 1.959963984540054

Key = tuple[Any, ...]
SCORE = pl.col("score")
OUTCOME = pl.col("outcome")
HAS_SCORE = SCORE.is_not_null()
RIGHT = SCORE >= 1.0
WHOLE = ("all", "")
PART = ("kind", "name")
KINDS = {"all": pl.lit(""), "category": pl.col("category"), "task": pl.col("task")}

VALUES = {name: pl.col(name) for name in ("answered", "truncated", "level")}
VALUES |= {"by_item": SCORE, "right": RIGHT}
"""Name of a number of a part to the value in a row that it is the mean of."""

COLUMNS: dict[str, Any] = dict.fromkeys(("result", "item", "group"), pl.Int64)
COLUMNS |= dict.fromkeys(("task", "category", "outcome"), pl.String)
COLUMNS |= dict.fromkeys(("answered", "truncated"), pl.Boolean)
COLUMNS |= dict.fromkeys(("score", "level", "step", "tokens"), pl.Float64)
"""The columns of a table of samples; null is what no file says.

`result` is the number of the run or file; `item` is the same for equal questions of a
task and `group` for rollouts of one line; `answered` is null without a score.
"""


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A mean of samples with its 95 % interval; clusters are taken as independent."""

    mean: float
    low: float
    high: float
    samples: int
    clusters: int

    def interval(self, digits: int = 3) -> str:
        """Return the interval as every table has it."""
        return f"{self.low:.{digits}f} to {self.high:.{digits}f}"


Numbers = dict[str, Any]
"""Name to an estimate or count of a part; None is an estimate of nothing."""


def plain(parts: Mapping[Key, Numbers]) -> dict[str, Any]:
    """Return the numbers of parts as JSON has them, by kind and name."""
    values: dict[str, Any] = {kind: {} for kind in KINDS}
    for (kind, name), numbers in parts.items():
        values[kind][name] = msgspec.to_builtins(numbers)
    return values | {"all": values["all"].get("")}


# -- tables ----------------------------------------------------------------------------


def row_of(sample: Sample, result: int = 0, score: str = "") -> Sequence[Any]:
    """Return the row of a sample, a value for each of `COLUMNS`.

    The score is that of the sample, or the one of this name that `rescore` gave it.
    """
    row = sample.row
    level = finite(row.get("level"))
    value = sample.score
    if score and value is not None:
        value = finite(row["scores"][score])
    # A group is one line of a file; in samples of evaluations, equal items.
    line, dot, _ = str(row.get("place", "")).rpartition(".")
    return (
        result,
        hash(sample.item),
        hash((row.get("source"), line)) if dot else None,
        sample.task,
        sample.category,
        sample.outcome,
        None if sample.score is None else sample.is_answered,
        sample.is_truncated if row.get("finish_reason") else None,
        value,
        level if level is not None and 0 <= level <= 1 else None,
        *(finite(row.get(name)) for name in ("step", "completion_tokens")),
    )


def table_of(rows: Iterable[Sequence[Any]]) -> pl.DataFrame:
    """Return the rows of `row_of` as a table."""
    return pl.DataFrame(iter(rows), schema=COLUMNS, orient="row")


def with_parts(table: pl.DataFrame) -> pl.DataFrame:
    """Return samples with a row for each part that they are of, in columns `PART`."""
    return pl.concat(
        table.with_columns(kind=pl.lit(kind), name=name) for kind, name in KINDS.items()
    )


# -- means with intervals --------------------------------------------------------------


def _student_95(freedom: int) -> float:
    # Abramowitz and Stegun, 26.7.5, within 0.02 from three degrees of freedom on; scipy
    # would be 40 MB for this one number.
    z = Z_95
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + math.fsum(term / freedom**i for i, term in enumerate(terms, 1))


def _wilson(
    mean: float, variance: float, clusters: int, freedom: int
) -> tuple[float, float]:
    n = float(clusters)
    z = Z_95
    # Rounding leaves a little variance where all scores are equal.
    if variance > 1e-12:
        n = mean * (1 - mean) / variance
        z = _student_95(freedom)
    centre = (mean + z**2 / (2 * n)) / (1 + z**2 / n)
    half = (z / (1 + z**2 / n)) * math.sqrt(mean * (1 - mean) / n + z**2 / (4 * n * n))
    # Rounding alone can put the mean of equal scores outside.
    low = min(mean, centre - half)
    high = max(mean, centre + half)
    return max(0.0, low), min(1.0, high)


def estimate_means(
    table: pl.DataFrame,
    value: pl.Expr = SCORE,
    by: Sequence[str] = PART,
    *,
    clusters: str = "item",
    within: tuple[float, float] | None = None,
) -> dict[Key, Estimate]:
    """Return the mean of a value with its interval, for each part of a table.

    Args:
        table: Rows without the value do not count; a part with none is not returned.
        value: In [0, 1]; with `within`, anything.
        by: Columns whose values are the part.
        clusters: "item", and each task is a stratum, or "task", without strata.
        within: What values can be, for Student's interval.
    """
    stratum = pl.lit(None) if clusters == "task" else pl.col("task")
    part = [*by, "stratum"]
    n = pl.col("n")
    total = pl.col("total")
    number = pl.len().over(part)
    mean = total.sum() / n.sum()
    middle = pl.when(number > 1).then(mean.over(part)).otherwise(mean.over(by))
    sums = (
        table.select(
            *by,
            stratum.alias("stratum"),
            pl.col(clusters),
            value=value.cast(pl.Float64),
        )
        .drop_nulls("value")
        .group_by(*part, clusters, maintain_order=True)
        .agg(n=pl.len().cast(pl.Float64), total=pl.col("value").sum())
        # One cluster tells nothing of the spread in its stratum.
        .with_columns(stratum=pl.when(number > 1).then(pl.col("stratum")))
        .with_columns(off=(total - n * middle) ** 2 * number / (number - 1).clip(1))
        .group_by(by, maintain_order=True)
        .agg(
            mean.alias("mean"),
            (pl.col("off").sum() / n.sum() ** 2).alias("variance"),
            n.sum().cast(pl.Int64),
            pl.len().alias("clusters"),
            pl.col("stratum").n_unique().alias("strata"),
        )
    )
    result: dict[Key, Estimate] = {}
    for *key, mean, variance, samples, count, strata in sums.iter_rows():
        if within is None:
            low, high = _wilson(mean, variance, count, count - strata)
        elif count == 1:
            low, high = within
        else:
            half = _student_95(count - strata) * math.sqrt(variance)
            low = max(within[0], mean - half)
            high = min(within[1], mean + half)
        result[tuple(key)] = Estimate(mean, low, high, samples, count)
    return result


def share_of(count: int, number: int) -> Estimate:
    """Return a share of independent things with its interval."""
    mean = count / number
    variance = mean * (1 - mean) / max(1, number - 1)
    return Estimate(mean, *_wilson(mean, variance, number, number - 1), number, number)


def best_of(value: pl.Expr, k: int) -> pl.Expr:
    """Return the expected best value of k completions of an item, without bias.

    Of values that are 0 or 1 it is pass@k, the chance that one of k is right. Of fewer
    than k completions it is null.

    Source: "Evaluating large language models trained on code" (Chen et al., 2021).
    """
    n = value.count().cast(pl.Float64)
    worse = n - 1 - pl.int_range(value.count()).cast(pl.Float64)
    # The best value is in k of n draws, and each next one is the best of those that
    # have none before it: comb(worse, k - 1) of comb(n, k).
    first = pl.when(worse == n - 1).then(k / n)
    share = first.otherwise((worse + 2 - k) / (worse + 1)).cum_prod()
    ordered = value.cast(pl.Float64).drop_nulls().sort(descending=True)
    return pl.when(n >= k).then((ordered * share).sum())


def best_of_items(
    table: pl.DataFrame, value: pl.Expr, by: Sequence[str], k: int
) -> dict[Key, Estimate]:
    """Return the mean of `best_of` over items, for each part, {} if k is 1."""
    items = table.filter(HAS_SCORE).group_by(*by, "task", "item", maintain_order=True)
    return estimate_means(items.agg(best_of(value, k)), by=by) if k > 1 else {}


# -- results ---------------------------------------------------------------------------


def completions_of_most_items(table: pl.DataFrame) -> int:
    """Return how many completions of an item every result has, for most of its items.

    Results with one completion of an item do not count.
    """
    sizes = table.filter(HAS_SCORE).group_by("result", "item").len()
    modes = sizes.group_by("result").agg(pl.col("len").mode().min())["len"]
    return int(modes.filter(modes > 1).min() or 1)


def results(
    table: pl.DataFrame, by: Sequence[str] = PART, k: int = 1
) -> dict[Key, Numbers]:
    """Return what each part came to, in order, with k completions of an item.

    Estimates are of the score `by_item`, and `by_task` if there are several; of what is
    `right` (score 1.0), which is pass@1; of `best_of_k` and `pass_at_k` of items that
    have k > 1 completions with a score; of the shares that are `answered` and
    `truncated`, and of groups `with_variance`; and of the `level`.
    `items` and `completions` have a score, and `failed` ones of the `rollouts` have
    none.
    """
    is_not_used = OUTCOME == NOT_USED
    by_task = estimate_means(table, by=by, clusters="task")
    groups = (
        table.filter(HAS_SCORE)
        .group_by(*by, "task", "item", "group")
        .agg(pl.len(), differ=SCORE.n_unique() > 1)
        .filter(pl.col("len") > 1)
    )
    means = {name: estimate_means(table, value, by) for name, value in VALUES.items()}
    means |= {
        "by_task": {part: of for part, of in by_task.items() if of.clusters > 1},
        "best_of_k": best_of_items(table, SCORE, by, k),
        "pass_at_k": best_of_items(table, RIGHT, by, k),
        "with_variance": estimate_means(groups, pl.col("differ"), by),
    }
    counts = table.group_by(by).agg(
        items=pl.col("item").filter(HAS_SCORE).n_unique(),
        rollouts=pl.len(),
        completions=SCORE.count(),
        failed=pl.len() - SCORE.count() - is_not_used.sum(),
        not_used=is_not_used.sum(),
    )
    measured: dict[Key, Numbers] = {}
    for row in counts.sort(by).iter_rows(named=True):
        part = tuple(row.pop(name) for name in by)
        measured[part] = {name: of.get(part) for name, of in means.items()} | row
    return measured


def paired(
    table: pl.DataFrame, first: int, second: int, by: Sequence[str] = PART
) -> dict[Key, Estimate]:
    """Return for each part the second result less the first one, on shared items."""
    result = pl.col("result")
    items = (
        table.filter(HAS_SCORE, result.is_in([first, second]))
        .group_by(*by, "task", "item", maintain_order=True)
        .agg(
            first=SCORE.filter(result == first).mean(),
            second=SCORE.filter(result == second).mean(),
        )
    )
    less = pl.col("second") - pl.col("first")
    return estimate_means(items, less, by, within=(-1.0, 1.0))
