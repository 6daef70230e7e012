"""From the groups of a screen to the tasks and levels that a run can learn from. Pure.

A model learns from groups whose rewards differ. The range of levels of each task is
divided into bands. Bands at the ends of the range are dropped if they clearly have less
variance than the rest. A task is left out if its groups have too little variance at the
remaining levels.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from rich import box

from rg_env.evaluation.numbers import Estimate, estimates, table_of
from rg_env.evaluation.samples import TRUNCATED, Row
from rg_env.reports.fitting_table import FittingTable
from rg_env.rollouts.shaping import has_variance

BANDS = 5
"""Parts of a task's levels: with a hundred groups each share is known to 0.2."""

POOR = 0.5
"""An end of the levels goes if its share is surely less than so much of the others':
there a group that teaches costs twice as many samples."""

MOSTLY = 0.5

COLUMNS: dict[str, Any] = {"task": pl.String, "item": pl.Int64, "band": pl.Int64}
COLUMNS |= {"variance": pl.Boolean, "completions": pl.Int64}
COLUMNS |= dict.fromkeys(("score", "truncated", "tokens", "seconds"), pl.Float64)
"""The columns of a table of groups; the last four are sums over their completions."""

Bounds = tuple[float, float]
Bands = tuple[int, int]
"""The first of some neighbouring bands, and the first one after them."""


@dataclasses.dataclass(frozen=True)
class Numbers:
    """What some groups have in common.

    The share is of groups with variance; scores, before they are shaped to rewards,
    cut-off completions and their lengths are means of completions, and the seconds
    from a request to its scores are of groups.
    """

    groups: int
    share: Estimate
    score: float
    truncated: float
    tokens: float
    seconds: float


@dataclasses.dataclass(frozen=True)
class TaskScreen:
    """What a screen found of a task.

    Attributes:
        task: Its name.
        bands: Share with variance of each band of its levels, easiest first, None where
            no group fell; one band where levels are not drawn from a range.
        levels: The range that is left; None where levels are not drawn from one.
        found: Numbers of the groups of that range; None where there is none.
        left_out: Why it is left out, "" if it is not.
    """

    task: str
    bands: Sequence[Estimate | None]
    levels: Bounds | None
    found: Numbers | None
    left_out: str

    @property
    def share(self) -> float:
        """Share of groups with variance that a run on these levels is to see."""
        return self.found.share.mean if self.found else 0.0


def _row(number: int, row: Row, bounds: Bounds | None) -> tuple[object, ...]:
    low, high = bounds or (0.0, 0.0)
    place = (row["level"] - low) / (high - low) if low < high else 0.0
    return (
        row["task"],
        number,
        min(BANDS - 1, int(place * BANDS)),
        has_variance(row["scores"]),
        len(row["scores"]),
        sum(row["task_scores"]),
        sum(end == TRUNCATED for end in row["finish_reasons"]),
        sum(row["completion_tokens"]),
        row["seconds"],
    )


def _numbers(groups: pl.DataFrame) -> dict[tuple[str, Bands], Numbers]:
    """Return the numbers of each task in all neighbouring bands that have a group."""
    ends = itertools.combinations(range(BANDS + 1), 2)
    ranges = pl.DataFrame([*ends], schema=["first", "last"], orient="row")
    band, by = pl.col("band"), ["task", "first", "last"]
    is_in = (band >= pl.col("first")) & (band < pl.col("last"))
    table = groups.join(ranges, how="cross").filter(is_in)
    shares = estimates(table, pl.col("variance"), by, strata=None)
    means = [pl.col(n).sum() / pl.col("completions").sum() for n in [*COLUMNS][5:8]]
    found = table.group_by(by).agg(pl.len(), *means, pl.col("seconds").mean())
    return {
        (task, (first, last)): Numbers(number, shares[task, first, last], *others)
        for task, first, last, number, *others in found.iter_rows()
    }


def _left(found: Mapping[Bands, Numbers], last: int) -> Bands:
    """Return the bands without poor ends, the shortest taken first."""

    def is_poor(end: Bands, others: Bands) -> bool:
        """Return whether some clearly have less variance than the others."""
        if end not in found or others not in found:
            return False
        rest = found[others].share
        return found[end].share.high < min(rest.low, POOR * rest.mean)

    first, size = 0, 1
    while size < last - first:
        if is_poor((last - size, last), (first, last - size)):
            last, size = last - size, 1
        elif is_poor((first, first + size), (first + size, last)):
            first, size = first + size, 1
        else:
            size += 1
    return first, last


def _why_left_out(found: Numbers | None, least_share: float) -> str:
    if found is None:
        return "no group"
    if found.share.mean >= least_share:
        return ""
    if found.truncated >= MOSTLY:
        return "truncated"
    return "too easy" if found.score >= MOSTLY else "too hard"


def _task_screen(
    task: str,
    numbers: Mapping[Bands, Numbers],
    bounds: Bounds | None,
    least_share: float,
) -> TaskScreen:
    low, high = bounds or (0.0, 0.0)
    number = BANDS if low < high else 1
    each = [numbers.get((band, band + 1)) for band in range(number)]
    first, last = _left(numbers, number)
    levels, width = None, (high - low) / number
    if bounds is not None:
        levels = round(low + first * width, 4), round(low + last * width, 4)
    found = numbers.get((first, last))
    bands = [None if of is None else of.share for of in each]
    why = _why_left_out(found, least_share)
    return TaskScreen(task, bands, levels, found, why)


def screen_rows(
    rows: Iterable[Row],
    bounds: Mapping[str, Bounds | None],
    least_share: float,
) -> list[TaskScreen]:
    """Return what a screen found of each task, the highest share first.

    Args:
        rows: Of its groups, as `process` writes them.
        bounds: Task to the range that its levels were drawn from, evenly, None if they
            were not; tasks without a row are there as well.
        least_share: Of groups with variance, in (0, 1]; a task with less is left out.
    """
    known = (row for row in rows if row["task"] in bounds)
    each = (_row(n, row, bounds[row["task"]]) for n, row in enumerate(known))
    by_task: dict[str, dict[Bands, Numbers]] = {task: {} for task in sorted(bounds)}
    for (task, bands), numbers in _numbers(table_of(each, COLUMNS)).items():
        by_task[task][bands] = numbers
    found = [
        _task_screen(task, numbers, bounds[task], least_share)
        for task, numbers in by_task.items()
    ]
    return sorted(found, key=lambda task: (bool(task.left_out), -task.share))


# -- the table -------------------------------------------------------------------------

TITLE = "Groups (n) with variance, 95 % interval; by fifths of the levels, from easy:"

BARS = "▁▂▃▄▅▆▇█"
NO_BAR = "·"


def _bar(band: Estimate | None) -> str:
    return NO_BAR if band is None else BARS[round(band.mean * (len(BARS) - 1))]


def _cells(task: TaskScreen) -> list[str]:
    found = task.found
    if found is None:
        return [task.task, "0", *[""] * 6, task.left_out]
    levels = "" if task.levels is None else "{:g}-{:g}".format(*task.levels)
    return [
        task.task,
        str(found.groups),
        f"{found.share.mean:.0%} ({found.share.interval(0, of=100)})",
        "".join(map(_bar, task.bands)) if len(task.bands) > 1 else "",
        f"{found.score:.2f}",
        f"{found.truncated:.0%}",
        f"{found.tokens:.0f}",
        f"{found.seconds:.1f}",
        task.left_out or levels,
    ]


def table_for(tasks: Sequence[TaskScreen]) -> FittingTable:
    """Return the results as a table for the terminal, without its `TITLE`."""
    table = FittingTable(
        [""],
        ["n", "with variance", "fifths", "score", "truncated", "tokens", "s", "levels"],
        ["s", "tokens", "truncated", "fifths", "score"],
        box=box.SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
    )
    table.columns[-1].justify = "left"
    for task in tasks:
        table.add_row(*_cells(task), style="dim" if task.left_out else None)
    return table
