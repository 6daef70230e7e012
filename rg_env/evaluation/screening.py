"""From the groups of a screen to the tasks and levels that a run can learn from. Pure.

A group teaches by the differences of its rewards. Of each task the range of levels is
cut into bands; from the ends of the range goes what surely has less variance than the
rest, and a task goes whose groups have too little of it at all levels that are left.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rich import box
from rich.table import Table

from rg_env.evaluation.samples import TRUNCATED
from rg_env.evaluation.statistics import Estimate, estimate
from rg_env.rollouts.shaping import has_variance

BANDS = 5
"""Of the levels of a task: with a hundred groups the share of each is known to 0.2."""

POOR = 0.5
"""An end of the levels goes if its share is surely less than so much of the rest's: it
costs as many samples for half the groups that teach."""

MOSTLY = 0.5

Bounds = tuple[float, float]


class ScreenedGroup(NamedTuple):
    """What counts of a group; the means are over its completions.

    Attributes:
        level: In [0, 1], None for the library's defaults.
        has_variance: Whether its rewards differ.
        score: Mean score, in [0, 1].
        truncated: Share that was cut off.
        tokens: Mean length.
        seconds: From its request to its scores.
    """

    level: float | None
    has_variance: bool
    score: float
    truncated: float
    tokens: float
    seconds: float


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Means over some groups.

    Attributes:
        groups: How many.
        share: Of groups with variance.
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
        bands: Numbers of each band of its levels, easiest first, None where no group
            fell; one band where levels are not drawn from a range.
        levels: The range that is left; None where levels are not drawn from one.
        found: Numbers of the groups of that range; None where there is none.
        left_out: Why it is left out, "" if it is not.
    """

    task: str
    bands: Sequence[Numbers | None]
    levels: Bounds | None
    found: Numbers | None
    left_out: str

    @property
    def share(self) -> float:
        """Share of groups with variance that a run on these levels is to see."""
        return self.found.share.mean if self.found else 0.0


def _group_of(row: Mapping[str, Any]) -> ScreenedGroup:
    """Return the group of a row of `process`."""
    return ScreenedGroup(
        row["level"],
        has_variance(row["scores"]),
        statistics.fmean(row["task_scores"]),
        statistics.fmean(reason in TRUNCATED for reason in row["finish_reasons"]),
        statistics.fmean(row["completion_tokens"]),
        row["seconds"],
    )


def _numbers(bands: Iterable[Sequence[ScreenedGroup]]) -> Numbers | None:
    groups = list(itertools.chain.from_iterable(bands))
    if not groups:
        return None
    flags = [float(group.has_variance) for group in groups]
    _, _, *others = zip(*groups, strict=True)
    share = estimate(flags, range(len(flags)))
    return Numbers(len(groups), share, *map(statistics.fmean, others))


def _banded(
    groups: Iterable[ScreenedGroup], bounds: Bounds | None
) -> list[list[ScreenedGroup]]:
    """Return the groups of each band of the range."""
    low, high = bounds or (0.0, 0.0)
    if low == high:
        return [list(groups)]
    bands: list[list[ScreenedGroup]] = [[] for _ in range(BANDS)]
    for group in groups:
        place = ((group.level or 0.0) - low) / (high - low)
        bands[min(BANDS - 1, max(0, int(place * BANDS)))].append(group)
    return bands


def _is_poor(end: Sequence[list[Any]], others: Sequence[list[Any]]) -> bool:
    """Say whether the bands at an end surely have less variance than the others."""
    found, rest = _numbers(end), _numbers(others)
    return bool(found and rest and found.share.high < POOR * rest.share.mean)


def _left(bands: Sequence[list[ScreenedGroup]]) -> tuple[int, int]:
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


def screen_task(
    task: str,
    groups: Sequence[ScreenedGroup],
    bounds: Bounds | None,
    least_share: float,
) -> TaskScreen:
    """Return what the groups of a task say.

    Args:
        task: Its name.
        groups: Of any number.
        bounds: The range that its levels were drawn from, evenly; None if they were
            not.
        least_share: Of groups with variance, in (0, 1]; a task with less is left out.
    """
    bands = _banded(groups, bounds)
    first, last = _left(bands)
    found, levels = _numbers(bands[first:last]), None
    if bounds is not None:
        low, width = bounds[0], (bounds[1] - bounds[0]) / len(bands)
        levels = round(low + first * width, 4), round(low + last * width, 4)
    each = [_numbers([band]) for band in bands]
    return TaskScreen(task, each, levels, found, _why_left_out(found, least_share))


def screen_rows(
    rows: Iterable[Mapping[str, Any]],
    bounds: Mapping[str, Bounds | None],
    least_share: float,
) -> list[TaskScreen]:
    """Return what a screen found of each task, the highest share first.

    Args:
        rows: Of its groups.
        bounds: Task to the range of its levels; tasks without a row are there as well.
        least_share: As `screen_task` takes it.
    """
    groups: dict[str, list[ScreenedGroup]] = {task: [] for task in bounds}
    for row in rows:
        if row.get("task") in groups:
            groups[row["task"]].append(_group_of(row))
    found = [screen_task(t, groups[t], bounds[t], least_share) for t in sorted(bounds)]
    return sorted(found, key=lambda task: (bool(task.left_out), -task.share))


# -- the table -------------------------------------------------------------------------

TITLE = "Groups with variance, % (95 % interval); by level, from easy to hard:"

BARS = "▁▂▃▄▅▆▇█"
NO_BAR = "·"


def _bar(band: Numbers | None) -> str:
    return NO_BAR if band is None else BARS[round(band.share.mean * (len(BARS) - 1))]


def _cells(task: TaskScreen) -> list[str]:
    found = task.found
    if found is None:
        return [task.task, "0", *[""] * 6, task.left_out]
    share, low, high, cut = (
        f"{100 * share:.0f}"
        for share in (*dataclasses.astuple(found.share)[:3], found.truncated)
    )
    levels = "" if task.levels is None else "{:g}-{:g}".format(*task.levels)
    return [
        task.task,
        str(found.groups),
        f"{share} ({low}-{high})",
        "".join(map(_bar, task.bands)) if len(task.bands) > 1 else "",
        f"{found.score:.2f}",
        cut,
        f"{found.tokens:.0f}",
        f"{found.seconds:.1f}",
        task.left_out or levels,
    ]


def table_of(tasks: Sequence[TaskScreen]) -> Table:
    """Return the results as a table for the terminal, without its `TITLE`."""
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column("", overflow="fold")
    for heading in ("groups", "%", "by level", "score", "cut %", "tokens", "s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("levels", no_wrap=True)
    for task in tasks:
        table.add_row(*_cells(task), style="dim" if task.left_out else None)
    return table
