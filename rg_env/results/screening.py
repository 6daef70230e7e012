"""From the groups of a screen to the tasks and levels that a run can learn from. Pure.

A model learns from groups whose rewards differ. The range of levels of each task is
divided into bands. Bands at the ends of the range are dropped if they clearly have less
variance than the rest. A task is left out if its groups have too little variance at the
remaining levels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table

from rg_env.results.estimates import Estimate, share_of
from rg_env.results.samples import TRUNCATED, Row
from rg_env.results.terminal import NumberTable
from rg_env.run.group import has_variance

# Parts of a task's levels: with a hundred groups each share is known to 0.2.
BANDS = 5

# An end of the levels goes if its share is surely less than so much of the others':
# there a group that teaches costs twice as many samples.
POOR = 0.5

MOSTLY = 0.5

Bounds = tuple[float, float]
Sums = Sequence[float]
"""Sums over groups: themselves, those with variance, completions, their scores, and how
many were cut off."""


@dataclasses.dataclass(frozen=True)
class TaskScreen:
    """What a screen shows of a task; its numbers are of the levels that remain.

    `means` are of the completions' scores, before they are shaped to rewards, and of
    what was cut off.
    """

    task: str
    levels: Bounds | None  # the range that remains; None without a range
    groups: int
    variance: Estimate | None  # share of the groups with variance
    means: Sequence[float]
    left_out: str  # why it is left out, "" if it is not

    @property
    def share(self) -> float:
        """Share of groups with variance that a run on these levels is to see."""
        return self.variance.mean if self.variance else 0.0


def _sums(row: Row) -> Sums:
    return (
        1,
        has_variance(row["scores"]),
        len(row["scores"]),
        sum(row["task_scores"]),
        sum(end == TRUNCATED for end in row["finish_reasons"]),
    )


def _total(parts: Iterable[Sums]) -> Sums:
    return [sum(column) for column in zip([0] * 5, *parts, strict=True)]


def _share(bands: Sequence[Sums]) -> Estimate | None:
    groups, varied, *_ = map(int, _total(bands))
    return share_of(varied, groups) if groups else None


def _is_poor(end: Sequence[Sums], rest: Sequence[Sums]) -> bool:
    one = _share(end)
    other = _share(rest)
    if one is None or other is None:
        return False
    return one.high < min(other.low, POOR * other.mean)


def _remaining(bands: Sequence[Sums]) -> tuple[int, int]:
    """Return the bands without poor ends, the shortest taken first."""
    first = 0
    last = len(bands)
    size = 1
    while size < last - first:
        if _is_poor(bands[last - size : last], bands[first : last - size]):
            last = last - size
            size = 1
        elif _is_poor(bands[first : first + size], bands[first + size : last]):
            first = first + size
            size = 1
        else:
            size += 1
    return first, last


def _task_screen(
    task: str,
    groups: Sequence[tuple[float | None, Sums]],
    bounds: Bounds | None,
    least_share: float,
) -> TaskScreen:
    low, high = bounds or (0.0, 0.0)
    number = BANDS if low < high else 1
    bands: list[list[Sums]] = [[] for _ in range(number)]
    for level, sums in groups:
        place = ((level or 0.0) - low) / (high - low) if low < high else 0.0
        bands[min(number - 1, int(place * number))].append(sums)
    totals = [_total(band) for band in bands]
    first, last = _remaining(totals)
    kept = totals[first:last]
    width = (high - low) / number
    levels = bounds and (round(low + first * width, 4), round(low + last * width, 4))
    count, _, completions, *means = _total(kept)
    variance = _share(kept)
    left_out = "no group"
    if variance is not None:
        means = [total / completions for total in means]
        left_out = "too easy" if means[0] >= MOSTLY else "too hard"
        left_out = "truncated" if means[1] >= MOSTLY else left_out
        left_out = "" if variance.mean >= least_share else left_out
    return TaskScreen(task, levels, int(count), variance, means, left_out)


def screen_rows(
    rows: Iterable[Row], bounds: Mapping[str, Bounds | None], least_share: float
) -> list[TaskScreen]:
    """Return what a screen shows of each task, the highest share first.

    Args:
        rows: Of its groups, as `process` writes them.
        bounds: Task to the range that its levels were drawn from, evenly, None if they
            were not; tasks without a row are there as well.
        least_share: Of groups with variance, in (0, 1]; a task with less is left out.
    """
    groups: dict[str, list[tuple[float | None, Sums]]]
    groups = {task: [] for task in sorted(bounds)}
    for row in rows:
        if row["task"] in bounds:
            groups[row["task"]].append((row["level"], _sums(row)))
    screens = [
        _task_screen(task, of, bounds[task], least_share) for task, of in groups.items()
    ]
    return sorted(screens, key=lambda task: (bool(task.left_out), -task.share))


def table_for(tasks: Sequence[TaskScreen]) -> Table:
    """Return the results as a table for the terminal."""
    headings = ["groups", "with variance", "levels", "score", "truncated"]
    title = "Groups with variance, with 95 % intervals"
    table = NumberTable("task", headings, title)
    for task in tasks:
        levels = "" if task.levels is None else "{:g}-{:g}".format(*task.levels)
        cells = ["0", "", task.left_out or levels]
        if task.variance is not None:
            cells[0] = str(task.groups)
            cells[1] = f"{task.share:.2f} ({task.variance.interval(2)})"
            cells += "{:.2f} {:.0%}".format(*task.means).split()
        table.add_row(task.task, *cells, style="dim" if task.left_out else None)
    return table
