"""From the groups of a screen to the tasks and levels that a run can learn from. Pure.

A model learns from groups whose rewards differ. The range of levels of each task is
divided into bands. Bands at the ends of the range are dropped if they clearly have less
variance than the rest. A task is left out if its groups have too little variance at the
remaining levels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table

from rg_env.evaluation.numbers import Estimate, share_of
from rg_env.evaluation.samples import TRUNCATED, Row
from rg_env.reports.terminal import NumberTable
from rg_env.rollouts.group import has_variance

BANDS = 5
"""Parts of a task's levels: with a hundred groups each share is known to 0.2."""

POOR = 0.5
"""An end of the levels goes if its share is surely less than so much of the others':
there a group that teaches costs twice as many samples."""

MOSTLY = 0.5

Bounds = tuple[float, float]
Group = tuple[bool, tuple[float, ...]]
"""Whether it has variance, and its sums: completions, their scores, how many were cut
off, their lengths, seconds from a request to the scores."""

Bands = Sequence[Sequence[Group]]


@dataclasses.dataclass(frozen=True)
class TaskScreen:
    """What a screen shows of a task; its numbers are of the levels that remain.

    Attributes:
        bands: Share with variance of each band of its levels, easiest first; one band
            where levels are not drawn from a range.
        levels: The range that remains; None where levels are not drawn from one.
        variance: Share of the groups with variance; None without a group.
        means: Score, before it is shaped to a reward, share that was cut off and length
            of the completions, and seconds of a group.
        left_out: Why it is left out, "" if it is not.
    """

    task: str
    bands: Sequence[Estimate | None]
    levels: Bounds | None
    groups: int
    variance: Estimate | None
    means: Sequence[float]
    left_out: str

    @property
    def share(self) -> float:
        """Share of groups with variance that a run on these levels is to see."""
        return self.variance.mean if self.variance else 0.0


def _group(row: Row) -> Group:
    return has_variance(row["scores"]), (
        len(row["scores"]),
        sum(row["task_scores"]),
        sum(end == TRUNCATED for end in row["finish_reasons"]),
        sum(row["completion_tokens"]),
        row["seconds"],
    )


def _share(bands: Bands) -> Estimate | None:
    vary = [has_variance for groups in bands for has_variance, _ in groups]
    return share_of(sum(vary), len(vary)) if vary else None


def _remaining(bands: Bands) -> tuple[int, int]:
    """Return the bands without poor ends, the shortest taken first."""

    def is_poor(
        end: Sequence[Sequence[Group]], rest: Sequence[Sequence[Group]]
    ) -> bool:
        one, other = _share(end), _share(rest)
        if one is None or other is None:
            return False
        return one.high < min(other.low, POOR * other.mean)

    first, last, size = 0, len(bands), 1
    while size < last - first:
        if is_poor(bands[last - size : last], bands[first : last - size]):
            last, size = last - size, 1
        elif is_poor(bands[first : first + size], bands[first + size : last]):
            first, size = first + size, 1
        else:
            size += 1
    return first, last


def _task_screen(
    task: str,
    groups: Sequence[tuple[float | None, Group]],
    bounds: Bounds | None,
    least_share: float,
) -> TaskScreen:
    low, high = bounds or (0.0, 0.0)
    number = BANDS if low < high else 1
    bands: list[list[Group]] = [[] for _ in range(number)]
    for level, group in groups:
        place = ((level or 0.0) - low) / (high - low) if low < high else 0.0
        bands[min(number - 1, int(place * number))].append(group)
    first, last = _remaining(bands)
    levels, width = None, (high - low) / number
    if bounds is not None:
        levels = round(low + first * width, 4), round(low + last * width, 4)
    kept = [sums for band in bands[first:last] for _, sums in band]
    variance, means, left_out = _share(bands[first:last]), list[float](), "no group"
    if variance is not None:
        completions, *totals, seconds = map(sum, zip(*kept, strict=True))
        means = [*(total / completions for total in totals), seconds / len(kept)]
        left_out = "too easy" if means[0] >= MOSTLY else "too hard"
        left_out = "truncated" if means[1] >= MOSTLY else left_out
        left_out = "" if variance.mean >= least_share else left_out
    each = [_share([band]) for band in bands]
    return TaskScreen(task, each, levels, len(kept), variance, means, left_out)


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
    groups: dict[str, list[tuple[float | None, Group]]]
    groups = {task: [] for task in sorted(bounds)}
    for row in rows:
        if row["task"] in bounds:
            groups[row["task"]].append((row["level"], _group(row)))
    screens = [
        _task_screen(task, of, bounds[task], least_share) for task, of in groups.items()
    ]
    return sorted(screens, key=lambda task: (bool(task.left_out), -task.share))


# -- the table -------------------------------------------------------------------------

TITLE = "Groups (n) with variance, 95 % interval; by fifths of the levels, from easy:"

BARS = "▁▂▃▄▅▆▇█"
NO_BAR = "·"


def _bar(band: Estimate | None) -> str:
    return NO_BAR if band is None else BARS[round(band.mean * (len(BARS) - 1))]


def table_for(tasks: Sequence[TaskScreen]) -> Table:
    """Return the results as a table for the terminal, without its `TITLE`."""
    headings = ["n", "with variance", "fifths", "score", "truncated", "tokens", "s"]
    last = ["s", "tokens", "truncated", "fifths", "score"]
    how: dict[str, Any] = {"box": box.SIMPLE_HEAD, "padding": 0, "pad_edge": False}
    table = NumberTable([""], headings, last, **how)
    table.add_column("levels")
    for task in tasks:
        levels = "" if task.levels is None else "{:g}-{:g}".format(*task.levels)
        cells = ["0", *[""] * 6]
        if task.variance is not None:
            interval = task.variance.interval(0, of=100)
            cells = [
                str(task.groups),
                f"{task.variance.mean:.0%} ({interval})",
                "".join(map(_bar, task.bands)) if len(task.bands) > 1 else "",
                *"{:.2f} {:.0%} {:.0f} {:.1f}".format(*task.means).split(),
            ]
        style = "dim" if task.left_out else None
        table.add_row(task.task, *cells, task.left_out or levels, style=style)
    return table
