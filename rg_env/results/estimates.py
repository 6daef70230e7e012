"""The results of saved completions: means with intervals, and counts. Pure.

All come from one table with a row for each sample. A part of it is all samples, or
those of a category or a task.

Samples of one item are alike, and so are items of one task. An interval that takes them
for independent is too narrow, so the standard error is the clustered one of "Adding
error bars to evals" (Miller, 2024), with the factor C / (C - 1) for few clusters C. The
tasks are not a sample of tasks, so each is a stratum: the interval does not include the
differences between their means. Tasks with only one item together form one stratum.

The interval of a mean is Wilson's at 95 %, for the number of independent samples that
would have this standard error, so it stays in [0, 1]. If all scores are equal, it is
that of C samples. The interval of a difference is Student's. Both have C degrees of
freedom, less one for each stratum.

Importing polars takes half a second. So a command that may not need results imports
this module, and those that use it, inside functions.
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
HAS_SCORE = SCORE.is_not_null()

PART_COLUMNS = ("kind", "name")
OVERALL = ("all", "")
KINDS = {"all": pl.lit(""), "category": pl.col("category"), "task": pl.col("task")}
"""Kind of parts to the name of the part that a row belongs to."""

MEASURES = {
    "answered": pl.col("answered"),
    "truncated": pl.col("truncated"),
    "level": pl.col("level"),
    "by_item": SCORE,
    "right": SCORE >= 1.0,
}
"""Name of an estimate to the value whose mean it estimates."""

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
    """The mean of samples with its 95 % interval, if clusters are independent."""

    mean: float
    low: float
    high: float
    samples: int
    clusters: int

    def interval(self, digits: int = 3) -> str:
        """Return the interval as a text of a table."""
        return f"{self.low:.{digits}f} to {self.high:.{digits}f}"


PartResult = dict[str, Any]
"""Name to an estimate or count of a part; None is an estimate without samples."""


def as_json(parts: Mapping[Key, PartResult]) -> dict[str, Any]:
    """Return the results of parts as plain values, by kind and name."""
    values: dict[str, Any] = {kind: {} for kind in KINDS}
    for (kind, name), part in parts.items():
        values[kind][name] = msgspec.to_builtins(part)
    return values | {"all": values["all"].get("")}


# -- tables ----------------------------------------------------------------------------


def row_of(sample: Sample, result: int = 0, score: str = "") -> Sequence[Any]:
    """Return the row of a sample, with a value for each of `COLUMNS`.

    Args:
        sample: The sample.
        result: The number of its run or file.
        score: The name of a score that `rescore` gave it; "" for its own score.
    """
    row = sample.row
    level = finite(row.get("level"))
    value = sample.score
    if score and value is not None:
        value = finite(row["scores"][score])
    # Rollouts of a group are in one line; in samples of evaluations, items are groups.
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
        finite(row.get("step")),
        finite(row.get("completion_tokens")),
    )


def table_of(rows: Iterable[Sequence[Any]]) -> pl.DataFrame:
    """Return the rows of `row_of` as a table."""
    return pl.DataFrame(iter(rows), schema=COLUMNS, orient="row")


def with_parts(table: pl.DataFrame) -> pl.DataFrame:
    """Return a row of each sample for each part that it belongs to."""
    return pl.concat(
        table.with_columns(kind=pl.lit(kind), name=name) for kind, name in KINDS.items()
    )


# -- means with intervals --------------------------------------------------------------


def _student_95(freedom: int) -> float:
    # Abramowitz and Stegun, 26.7.5, within 0.02 from three degrees of freedom on. Scipy
    # would be 40 MB for this one function.
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
    # Rounding leaves a little variance if all scores are equal.
    if variance > 1e-12:
        n = mean * (1 - mean) / variance
        z = _student_95(freedom)
    scale = 1 + z**2 / n
    center = (mean + z**2 / (2 * n)) / scale
    half = z / scale * math.sqrt(mean * (1 - mean) / n + z**2 / (4 * n * n))
    # Rounding can put the mean of equal scores outside.
    low = min(mean, center - half)
    high = max(mean, center + half)
    return max(0.0, low), min(1.0, high)


def _student(
    mean: float, variance: float, freedom: int, within: tuple[float, float]
) -> tuple[float, float]:
    if freedom == 0:
        return within
    half = _student_95(freedom) * math.sqrt(variance)
    return max(within[0], mean - half), min(within[1], mean + half)


def estimate_means(
    table: pl.DataFrame,
    value: pl.Expr = SCORE,
    by: Sequence[str] = PART_COLUMNS,
    *,
    clusters: str = "item",
    within: tuple[float, float] | None = None,
) -> dict[Key, Estimate]:
    """Return the mean of a value with its interval, for each part of a table.

    Args:
        table: Rows in which the value is null do not count. A part without any other
            row is not returned.
        value: It is in [0, 1], or in the range `within`.
        by: The columns with the key of a part.
        clusters: "item", with each task as a stratum, or "task", without strata.
        within: The range of Student's interval; None for Wilson's.
    """
    stratum = pl.lit(None) if clusters == "task" else pl.col("task")
    strata = [*by, "stratum"]
    stratum_size = pl.len().over(strata)
    totals = (
        table.select(*by, clusters, stratum=stratum, value=value.cast(pl.Float64))
        .drop_nulls("value")
        .group_by(*strata, clusters, maintain_order=True)
        .agg(n=pl.len().cast(pl.Float64), total=pl.col("value").sum())
        # A single cluster does not show the variance in its stratum, so all of these
        # form one: the stratum null.
        .with_columns(stratum=pl.when(stratum_size > 1).then(pl.col("stratum")))
    )
    n = pl.col("n")
    total = pl.col("total")
    mean = total.sum() / n.sum()
    center = pl.when(stratum_size > 1).then(mean.over(strata)).otherwise(mean.over(by))
    deviation = total - n * center
    parts = (
        totals.with_columns(
            square=deviation**2 * stratum_size / (stratum_size - 1).clip(1)
        )
        .group_by(by, maintain_order=True)
        .agg(
            mean=mean,
            variance=pl.col("square").sum() / n.sum() ** 2,
            samples=n.sum().cast(pl.Int64),
            size=pl.len(),
            freedom=pl.len() - pl.col("stratum").n_unique(),
        )
    )
    estimates: dict[Key, Estimate] = {}
    for *key, average, variance, samples, size, freedom in parts.iter_rows():
        if within is None:
            low, high = _wilson(average, variance, size, freedom)
        else:
            low, high = _student(average, variance, freedom, within)
        estimates[tuple(key)] = Estimate(
            average, low, high, samples=samples, clusters=size
        )
    return estimates


def estimate_share(count: int, total: int) -> Estimate:
    """Return the share of independent events, `count` of `total`."""
    mean = count / total
    variance = mean * (1 - mean) / max(1, total - 1)
    low, high = _wilson(mean, variance, total, total - 1)
    return Estimate(mean, low, high, samples=total, clusters=total)


def best_of_k(value: pl.Expr, k: int) -> pl.Expr:
    """Return the unbiased expectation of the best value of k completions of an item.

    For values of 0 or 1 this is pass@k, the probability that one of k is right. It is
    null if the item has fewer than k completions.

    Source: "Evaluating large language models trained on code" (Chen et al., 2021).
    """
    n = value.count().cast(pl.Float64)
    worse = n - 1 - pl.int_range(value.count()).cast(pl.Float64)
    # A share k / n of the draws has the best value. Each next value is the best of
    # those that have none before it: comb(worse, k - 1) of comb(n, k).
    first = pl.when(worse == n - 1).then(k / n)
    share = first.otherwise((worse + 2 - k) / (worse + 1)).cum_prod()
    ordered = value.cast(pl.Float64).drop_nulls().sort(descending=True)
    return pl.when(n >= k).then((ordered * share).sum())


def estimate_best_of_k(
    table: pl.DataFrame, value: pl.Expr, by: Sequence[str], k: int
) -> dict[Key, Estimate]:
    """Return the mean of `best_of_k` over the items of each part, {} if k is 1."""
    items = table.filter(HAS_SCORE).group_by(*by, "task", "item", maintain_order=True)
    return estimate_means(items.agg(best_of_k(value, k)), by=by) if k > 1 else {}


# -- results ---------------------------------------------------------------------------


def usual_completions(table: pl.DataFrame) -> int:
    """Return the number of completions that most items of a result have.

    It is the smallest one of all results with several completions of an item, else 1.
    """
    sizes = table.filter(HAS_SCORE).group_by("result", "item").len()
    modes = sizes.group_by("result").agg(pl.col("len").mode().min())["len"]
    return int(modes.filter(modes > 1).min() or 1)


def measure_parts(
    table: pl.DataFrame, by: Sequence[str] = PART_COLUMNS, k: int = 1
) -> dict[Key, PartResult]:
    """Return the result of each part, in order.

    Estimates are of the score `by_item`, and `by_task` if there are several; of what is
    `right` (score 1.0), which is pass@1; of `best_of_k` and `pass_at_k` of items that
    have k > 1 completions with a score; of the shares that are `answered` and
    `truncated`, and of groups `with_variance`; and of the `level`.
    `items` and `completions` count those with a score, and `failed` and `not_used` the
    `rollouts` without one.
    """
    is_not_used = pl.col("outcome") == NOT_USED
    by_task = estimate_means(table, by=by, clusters="task")
    groups = (
        table.filter(HAS_SCORE)
        .group_by(*by, "task", "item", "group")
        .agg(pl.len(), differ=SCORE.n_unique() > 1)
        .filter(pl.col("len") > 1)
    )
    means = {name: estimate_means(table, value, by) for name, value in MEASURES.items()}
    means |= {
        "by_task": {part: mean for part, mean in by_task.items() if mean.clusters > 1},
        "best_of_k": estimate_best_of_k(table, SCORE, by, k),
        "pass_at_k": estimate_best_of_k(table, MEASURES["right"], by, k),
        "with_variance": estimate_means(groups, pl.col("differ"), by),
    }
    counts = table.group_by(by).agg(
        items=pl.col("item").filter(HAS_SCORE).n_unique(),
        rollouts=pl.len(),
        completions=SCORE.count(),
        failed=pl.len() - SCORE.count() - is_not_used.sum(),
        not_used=is_not_used.sum(),
    )
    results: dict[Key, PartResult] = {}
    for row in counts.sort(by).iter_rows(named=True):
        part = tuple(row.pop(name) for name in by)
        estimates = {name: values.get(part) for name, values in means.items()}
        results[part] = estimates | row
    return results


def estimate_differences(
    table: pl.DataFrame, first: int, second: int
) -> dict[Key, Estimate]:
    """Return second minus first result on the items of both, for each part."""
    result = pl.col("result")
    items = (
        table.filter(HAS_SCORE, result.is_in([first, second]))
        .group_by(*PART_COLUMNS, "task", "item", maintain_order=True)
        .agg(
            first=SCORE.filter(result == first).mean(),
            second=SCORE.filter(result == second).mean(),
        )
    )
    difference = pl.col("second") - pl.col("first")
    return estimate_means(items, difference, within=(-1.0, 1.0))
