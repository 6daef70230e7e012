"""Every number of saved completions, over one table with a row for each. Pure.

Samples of one item, or items of one task, are alike: an interval that takes them for
independent is too narrow. The standard error is the clustered one, as "Adding error
bars to evals" (Miller, 2024) has it, with the factor C / (C - 1) for few clusters C.

An interval for exactly these tasks does not include the differences between their
means: each task is a stratum with its own mean, number of clusters and factor. Tasks
with only one item tell nothing about the spread within a task, so together they form
one stratum.

An interval of a mean is Wilson's at 95 %, for as many independent samples as would have
that standard error: it stays in [0, 1]. Where all scores are equal it is that of C
samples. One of a difference is Student's. Both have as many degrees of freedom as there
are clusters more than strata.

This module imports polars, which takes half a second: a command that may do without
numbers imports it, and what uses it, where it needs them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from rg_env.evaluation.samples import NOT_USED, Sample, finite

Z_95 = 1.959963984540054

ROWS_AT_ONCE = 10_000
"""A growing table holds so many as Python objects, all others in a few bytes each."""

Key = tuple[Any, ...]
"""The values of the columns that tell parts of a table apart."""

SCORE = pl.col("score")
HAS_SCORE = SCORE.is_not_null()
WHOLE = ("all", "")
PART = ("kind", "name")
KINDS = {"all": pl.lit(""), "category": pl.col("category"), "task": pl.col("task")}
"""Kinds of parts to the name that a sample has there."""

COLUMNS: dict[str, Any] = {
    "result": pl.Int64,
    "task": pl.String,
    "category": pl.String,
    "item": pl.Int64,
    "group": pl.Int64,
    "outcome": pl.String,
    "score": pl.Float64,
    "right": pl.Boolean,
    "answered": pl.Boolean,
    "truncated": pl.Boolean,
    "level": pl.Float64,
    "step": pl.Float64,
    "tokens": pl.Float64,
    "characters": pl.Float64,
}
"""The columns of a table of samples; null is what no file says.

`result` is the number of the run or file; `item` is the same for equal questions of a
task and `group` for rollouts of one line; `right` and `answered` are null without a
score.
"""


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval.

    Attributes:
        mean: Of all samples; in [0, 1], a difference in [-1, 1].
        samples: That the mean is of.
        clusters: That are taken as independent.
    """

    mean: float
    low: float
    high: float
    samples: int
    clusters: int

    def interval(self, digits: int = 3, *, of: int = 1) -> str:
        """Return the interval as every table has it; `of` 100 gives percent."""
        return f"{of * self.low:.{digits}f} to {of * self.high:.{digits}f}"


@dataclasses.dataclass(frozen=True)
class PartResult:
    """What some samples came to: all of them, those of a category or of a task.

    Estimates are clustered by item; best_of_k and pass_at_k are of the items that have
    k completions with a score, and None where k is 1.

    Attributes:
        by_item: Mean score of the completions.
        by_task: The same, clustered by task; None for a single task.
        right: Share of the completions whose score is 1.0, which is pass@1.
        best_of_k: Mean of the best score of k completions, without bias.
        pass_at_k: Chance that one of k completions is right, without bias.
        answered: Share of the completions that hold an answer.
        score_of_answered: Mean score of these.
        truncated: Completions that were cut off; None where no file says so.
        failed: Completions without a score.
        not_used: Items that are not used.
    """

    items: int
    completions: int
    by_item: Estimate
    by_task: Estimate | None
    right: Estimate
    best_of_k: Estimate | None
    pass_at_k: Estimate | None
    answered: float
    score_of_answered: Estimate | None
    truncated: int | None
    failed: int
    not_used: int

    def as_json(self) -> dict[str, Any]:
        """Return the same as JSON, with the mean score and its interval first."""
        found = dataclasses.asdict(self)
        by_item = found.pop("by_item")
        first = {name: by_item[name] for name in ("mean", "low", "high")}
        return {**first, **found}


@dataclasses.dataclass(frozen=True)
class Paired:
    """The difference between two results: the second minus the first.

    The mean difference has confidence intervals by item and by task; `means` are the
    means of the two results over the same items. All are None if no item has a score in
    both results, and `by_task` is None for a single task. Items with a score in only
    one result are counted.
    """

    means: tuple[float, float] | None = None
    by_item: Estimate | None = None
    by_task: Estimate | None = None
    only_first: int = 0
    only_second: int = 0


# -- tables ----------------------------------------------------------------------------


def text_of(text: str) -> str:
    r"""Return a text that a table takes: half a character becomes \udxxx."""
    return text.encode(errors="backslashreplace").decode()


class GrowingTable:
    """Rows that come one by one and become a table, by default one of samples."""

    def __init__(self, columns: Mapping[str, Any] = COLUMNS) -> None:
        self._columns, self._new = columns, list[Sequence[Any]]()
        self._parts = [pl.DataFrame(schema=columns)]

    def add(self, row: Sequence[Any]) -> None:
        """Add a row, a value for each column."""
        self._new.append(row)
        if len(self._new) == ROWS_AT_ONCE:
            self._take()

    def _take(self) -> None:
        rows = pl.DataFrame(self._new, schema=self._columns, orient="row")
        self._parts.append(rows)
        self._new.clear()

    def table(self) -> pl.DataFrame:
        """Return all rows so far."""
        self._take()
        self._parts = [pl.concat(self._parts, rechunk=True)]
        return self._parts[0]


def table_of(
    rows: Iterable[Sequence[Any]], columns: Mapping[str, Any] = COLUMNS
) -> pl.DataFrame:
    """Return rows as a table; by default with the `COLUMNS` of samples."""
    growing = GrowingTable(columns)
    for row in rows:
        growing.add(row)
    return growing.table()


def row_of(sample: Sample, result: int = 0) -> Sequence[Any]:
    """Return the row of a sample, a value for each of `COLUMNS`."""
    row, is_scored = sample.row, sample.score is not None
    text, has_end = row.get("completion"), bool(row.get("finish_reason"))
    level = finite(row.get("level"))
    # A group is one line of a file; in samples of evaluations, equal items.
    line, dot, _ = str(row.get("place", "")).rpartition(".")
    return (
        result,
        text_of(sample.task),
        text_of(sample.category),
        hash(sample.item),
        hash((row.get("source"), line)) if dot else None,
        text_of(sample.outcome),
        sample.score,
        sample.is_right if is_scored else None,
        sample.is_answered if is_scored else None,
        sample.is_truncated if has_end else None,
        level if level is not None and 0 <= level <= 1 else None,
        *(finite(row.get(name)) for name in ("step", "completion_tokens")),
        len(text) if isinstance(text, str) else None,
    )


def with_parts(table: pl.DataFrame, kinds: Iterable[str] = KINDS) -> pl.DataFrame:
    """Return a table in which a sample has a row for each part that it is of.

    The new columns `PART` say which: `WHOLE`, its category or its task.
    """
    parts = ((pl.lit(kind).alias("kind"), KINDS[kind].alias("name")) for kind in kinds)
    return pl.concat([table.with_columns(part) for part in parts])


# -- means with intervals --------------------------------------------------------------


def _student_95(freedom: int) -> float:
    """Return Student's 97.5 % quantile, within 0.02 from three degrees of freedom on.

    Source: Abramowitz and Stegun, 26.7.5; scipy would be 40 MB for this one number.
    """
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
    n, z = float(clusters), Z_95
    # Rounding leaves a little variance where all scores are equal.
    if variance > 1e-12:
        n, z = mean * (1 - mean) / variance, _student_95(freedom)
    centre = (mean + z**2 / (2 * n)) / (1 + z**2 / n)
    half = (z / (1 + z**2 / n)) * math.sqrt(mean * (1 - mean) / n + z**2 / (4 * n * n))
    # Rounding alone can put the mean of equal scores outside.
    low, high = min(mean, centre - half), max(mean, centre + half)
    return max(0.0, low), min(1.0, high)


def estimates(
    table: pl.DataFrame,
    value: pl.Expr = SCORE,
    by: Sequence[str] = PART,
    *,
    clusters: str = "item",
    strata: str | None = "task",
    within: tuple[float, float] | None = None,
) -> dict[Key, Estimate]:
    """Return the mean of a value with its interval, for each part of a table.

    Args:
        table: Rows without the value do not count; a part with none is not returned.
        value: In [0, 1]; with `within`, anything.
        by: Columns whose values are the part.
        clusters: Column of what is the same in rows that are like each other.
        strata: Column of what is no sample of parts like it.
        within: What values can be, for Student's interval; that is all of it where
            there is one cluster.
    """
    stratum = pl.lit(None) if strata is None else pl.col(strata)
    part = [*by, "stratum"]
    n, total, found = pl.col("n"), pl.col("total"), pl.len().cast(pl.Float64)
    several = found.over(part) > 1
    middle = (total.sum() / n.sum()).over(part)
    factor = pl.when(several).then(found.over(part) / (found.over(part) - 1))
    sums = (
        table.select(*by, stratum.alias("stratum"), pl.col(clusters), value=value)
        .drop_nulls("value")
        .with_columns(pl.col("value").cast(pl.Float64))
        .group_by(*part, clusters, maintain_order=True)
        .agg(n=pl.len().cast(pl.Float64), total=pl.col("value").sum())
        # One cluster tells nothing of the spread in its stratum.
        .with_columns(stratum=pl.when(several).then(pl.col("stratum")))
        .with_columns(mean=(total.sum() / n.sum()).over(by))
        .with_columns(
            # What a stratum adds to the variance; one cluster lies off the mean.
            off=(total - n * pl.when(several).then(middle).otherwise(pl.col("mean")))
            ** 2
            * factor.otherwise(1.0)
        )
        .group_by(by, maintain_order=True)
        .agg(
            pl.col("mean").first(),
            (pl.col("off").sum() / n.sum() ** 2).alias("variance"),
            n.sum().cast(pl.Int64),
            pl.len().alias("clusters"),
            pl.col("stratum").n_unique().alias("strata"),
        )
    )
    result: dict[Key, Estimate] = {}
    for *key, mean, variance, samples, number, parts in sums.iter_rows():
        if within is None:
            low, high = _wilson(mean, variance, number, number - parts)
        elif number == 1:
            low, high = within
        else:
            half = _student_95(number - parts) * math.sqrt(variance)
            low, high = max(within[0], mean - half), min(within[1], mean + half)
        result[tuple(key)] = Estimate(mean, low, high, samples, number)
    return result


def estimate(scores: Sequence[float], clusters: Iterable[Hashable]) -> Estimate:
    """Return the mean of scores in [0, 1] with its interval.

    Args:
        scores: Shape (N,).
        clusters: Of each score, what it shares with those that are like it, shape (N,).

    Raises:
        ValueError: There are no scores.
    """
    if not scores:
        raise ValueError("no scores to estimate from")
    given = {"score": [*map(float, scores)], "item": [*map(hash, clusters)]}
    table = with_parts(pl.DataFrame(given), ["all"])
    return estimates(table, strata=None)[WHOLE]


def best_of(value: pl.Expr, k: int) -> pl.Expr:
    """Return the expected best of k completions of an item, without bias.

    Of values that are 0 or 1 it is pass@k, the chance that one of k is right. Of fewer
    than k completions it is null.

    Args:
        value: Of each completion that has a score.
        k: Completions that are drawn of them without replacement, at least 1.

    Source: "Evaluating large language models trained on code" (Chen et al., 2021).
    """
    n = pl.len().cast(pl.Float64)
    place = pl.int_range(pl.len()).cast(pl.Float64)
    # The value at place i is the best one of comb(i, k - 1) of the comb(n, k) draws.
    share = k / n
    for j in range(k - 1):
        share = share * (place - j) / (n - 1 - j)
    ordered = value.cast(pl.Float64).sort()
    return pl.when(n >= k).then((ordered * share).sum())


# -- results ---------------------------------------------------------------------------


def results(
    table: pl.DataFrame, by: Sequence[str] = PART, k: int = 1
) -> dict[Key, PartResult]:
    """Return what each part of a table came to; a part without a score is left out.

    Args:
        table: Samples with and without a score.
        by: Columns whose values are the part.
        k: Completions of an item.
    """
    done, is_not_used = table.filter(HAS_SCORE), pl.col("outcome") == NOT_USED
    of_tasks = estimates(done, by=by, clusters="task", strata=None)
    means = {
        "by_item": estimates(done, by=by),
        "by_task": {part: of for part, of in of_tasks.items() if of.clusters > 1},
        "right": estimates(done, pl.col("right"), by),
        "score_of_answered": estimates(done.filter(pl.col("answered")), by=by),
        "best_of_k": {},
        "pass_at_k": {},
    }
    if k > 1:
        items = done.group_by(*by, "task", "item", maintain_order=True).agg(
            best_of_k=best_of(SCORE, k), pass_at_k=best_of(pl.col("right"), k)
        )
        for name in ("best_of_k", "pass_at_k"):
            means[name] = estimates(items, pl.col(name), by)
    truncated = pl.col("truncated")
    counts = table.group_by(by, maintain_order=True).agg(
        completions=SCORE.count(),
        answered=pl.col("answered").mean(),
        truncated=pl.when(truncated.count() > 0).then(truncated.sum()),
        failed=pl.len() - SCORE.count() - is_not_used.sum(),
        not_used=is_not_used.sum(),
    )
    found: dict[Key, PartResult] = {}
    for row in counts.iter_rows(named=True):
        part = tuple(row.pop(name) for name in by)
        if score := means["by_item"].get(part):
            these: Any = {name: of.get(part) for name, of in means.items()}
            found[part] = PartResult(items=score.clusters, **these, **row)
    return found


def paired(
    table: pl.DataFrame, first: int, second: int, by: Sequence[str] = PART
) -> dict[Key, Paired]:
    """Return for each part the second result less the first one, on shared items.

    A difference is the mean over the items that both have, of the difference of their
    means there.
    """
    items = [*by, "task", "item"]
    means = table.filter(HAS_SCORE).group_by(*items, "result", maintain_order=True)
    scores = means.agg(SCORE.mean())
    one, two = (scores.filter(result=r).drop("result") for r in (first, second))
    how: dict[str, Any] = {"how": "full", "coalesce": True}
    both = one.join(two, on=items, suffix="_2", maintain_order="left_right", **how)
    a, b = SCORE, pl.col("score_2")
    is_shared = a.is_not_null() & b.is_not_null()
    within = (-1.0, 1.0)
    by_item = estimates(both, b - a, by, within=within)
    of_tasks = estimates(both, b - a, by, clusters="task", strata=None, within=within)
    counts = both.group_by(by, maintain_order=True).agg(
        a.filter(is_shared).mean().alias("first"),
        b.filter(is_shared).mean().alias("second"),
        only_first=b.is_null().sum(),
        only_second=a.is_null().sum(),
    )
    found = {}
    for row in counts.iter_rows(named=True):
        part = tuple(row.pop(name) for name in by)
        both_means, of_task = (row.pop("first"), row.pop("second")), of_tasks.get(part)
        found[part] = Paired(
            both_means if part in by_item else None,
            by_item.get(part),
            of_task if of_task and of_task.clusters > 1 else None,
            **row,
        )
    return found
