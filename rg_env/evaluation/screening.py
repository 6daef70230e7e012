"""From the groups of a screen to the tasks and levels that a run can learn from. Pure.

A model learns from groups whose rewards differ. The range of levels of each task is
divided into bands. Bands at the ends of the range are dropped if they clearly have less
variance than the rest. A task is left out if its groups have too little variance at the
remaining levels.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence

from rich import box

from rg_env.evaluation.samples import TRUNCATED, Row
from rg_env.evaluation.statistics import Estimate, estimate, grouped
from rg_env.reports.fitting_table import FittingTable
from rg_env.rollouts.shaping import has_variance

BANDS = 5
"""Of the levels of a task: with a hundred groups the share of each is known to 0.2."""

POOR = 0.5
"""An end of the levels goes if its share is surely less than so much of the others':
there a group that teaches costs twice as many samples."""

MOSTLY = 0.5

Bounds = tuple[float, float]


Rows = Sequence[Row]


@dataclasses.dataclass(frozen=True)
class Numbers:
    """What some groups have in common; all but the number and the share are means.

    Attributes:
        groups: How many.
        share: Of groups with variance.
        score: Before it is shaped to a reward, in [0, 1].
        truncated: Share of completions that were cut off.
        tokens: Length of a completion.
        seconds: From a group's request to its scores.
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


def _share(rows: Iterable[Row]) -> Estimate | None:
    flags = [float(has_variance(row["scores"])) for row in rows]
    return estimate(flags, range(len(flags))) if flags else None


def _numbers(rows: Rows) -> Numbers | None:
    share = _share(rows)
    if share is None:
        return None

    def mean(key: str) -> float:
        return statistics.fmean(value for row in rows for value in row[key])

    ends = [end in TRUNCATED for row in rows for end in row["finish_reasons"]]
    seconds = statistics.fmean(row["seconds"] for row in rows)
    means = mean("task_scores"), statistics.fmean(ends), mean("completion_tokens")
    return Numbers(len(rows), share, *means, seconds)


def _banded(rows: Rows, bounds: Bounds | None) -> list[list[Row]]:
    """Return the rows of each band of the range."""
    low, high = bounds or (0.0, 0.0)
    if low == high:
        return [list(rows)]
    bands: list[list[Row]] = [[] for _ in range(BANDS)]
    for row in rows:
        place = (row["level"] - low) / (high - low)
        bands[min(BANDS - 1, int(place * BANDS))].append(row)
    return bands


def _is_poor(end: Sequence[Rows], others: Sequence[Rows]) -> bool:
    """Return whether the bands at an end clearly have less variance than the others."""
    found, rest = (_share(itertools.chain(*bands)) for bands in (end, others))
    if found is None or rest is None:
        return False
    return found.high < min(rest.low, POOR * rest.mean)


def _left(bands: Sequence[Rows]) -> tuple[int, int]:
    """Return first and last of the bands without poor ends, the shortest taken first.

    The last one is not among them.
    """
    first, last, size = 0, len(bands), 1
    while size < last - first:
        if _is_poor(bands[last - size : last], bands[first : last - size]):
            last, size = last - size, 1
        elif _is_poor(bands[first : first + size], bands[first + size : last]):
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
    task: str, rows: Rows, bounds: Bounds | None, least_share: float
) -> TaskScreen:
    bands = _banded(rows, bounds)
    first, last = _left(bands)
    found, levels = _numbers([*itertools.chain(*bands[first:last])]), None
    if bounds is not None:
        low, width = bounds[0], (bounds[1] - bounds[0]) / len(bands)
        levels = round(low + first * width, 4), round(low + last * width, 4)
    why = _why_left_out(found, least_share)
    return TaskScreen(task, [*map(_share, bands)], levels, found, why)


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
    by_task = grouped(rows, lambda row: row["task"])
    found = [
        _task_screen(task, by_task.get(task, []), bounds[task], least_share)
        for task in sorted(bounds)
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


def table_of(tasks: Sequence[TaskScreen]) -> FittingTable:
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
