"""`screen`: the tasks and levels that a run can learn from.

A screen is a run of `process` with the settings of a run of `serve`: requests, lengths,
scores and rewards are the same. But it samples the tasks in turn instead of by weight,
spreads their levels evenly over the range, and uses items that the run does not sample.

A model learns from groups whose rewards differ. The range of levels of each task is
divided into bands. Bands at the ends of the range are dropped if they clearly have less
variance than the rest. A task is left out if its groups have too little variance at the
remaining levels.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import yaml
from rich.table import Table

from rg_env.errors import SettingError, counted, not_allowed, shown
from rg_env.places import check_writable
from rg_env.results.estimates import Estimate, estimate_share
from rg_env.results.samples import TRUNCATED, Row, grouped
from rg_env.results.terminal import NumberTable
from rg_env.run.group import has_variance
from rg_env.settings.environment_settings import TASK_SELECTION
from rg_env.stream.draws import Stream

logger = logging.getLogger(__name__)

# By default, a screen samples a share of the run's rollouts, at least 5 groups a task.
SHARE_OF_RUN = 0.02
MIN_GROUPS = 5

HEAD = "# Written by `screen`"
"""The beginning of a file of settings that a screen may replace."""

# With a hundred groups of a task, the share of each band is known to 0.2.
BANDS = 5

# An end of a range is dropped if its share of groups with variance is surely below this
# part of the others': there, a group with variance costs over twice as many samples.
POOR = 0.5

# A task is too easy from this score on, and truncated from this share on.
MOSTLY = 0.5

Bounds = tuple[float, float]


class _Screened(NamedTuple):
    """A group: its level, whether its rewards differ, and means of its completions."""

    task: str
    level: float | None
    has_variance: bool
    score: float
    truncated: float


Band = Sequence[_Screened]


class TaskScreen(NamedTuple):
    """The results of a task, on the levels that are kept.

    Attributes:
        levels: The range of levels that is kept; None without a range.
        variance: Share of the groups with variance; None if there is no group.
        score: Mean score of the completions, before it is shaped to rewards.
        truncated: Share of truncated completions.
        left_out: The reason for which the task is left out, or "".
    """

    task: str
    levels: Bounds | None
    variance: Estimate | None = None
    score: float = 0.0
    truncated: float = 0.0
    left_out: str = ""

    @property
    def share(self) -> float:
        """The share of groups with variance that a run on these levels can expect."""
        return self.variance.mean if self.variance else 0.0


def _variance(bands: Iterable[Band]) -> Estimate | None:
    """Return the share of groups with variance."""
    varied = [group.has_variance for band in bands for group in band]
    return estimate_share(sum(varied), len(varied)) if varied else None


def _is_poor(end: Sequence[Band], rest: Sequence[Band]) -> bool:
    poor = _variance(end)
    other = _variance(rest)
    return bool(poor and other and poor.high < min(other.low, POOR * other.mean))


def _kept_bands(bands: Sequence[Band]) -> tuple[int, int]:
    """Drop poor ends, the shortest first; return the first band and the end."""
    start = 0
    end = len(bands)
    size = 1
    while size < end - start:
        if _is_poor(bands[end - size : end], bands[start : end - size]):
            end -= size
            size = 1
        elif _is_poor(bands[start : start + size], bands[start + size : end]):
            start += size
            size = 1
        else:
            size += 1
    return start, end


def _screen_task(
    task: str, groups: Band, bounds: Bounds | None, least_share: float
) -> TaskScreen:
    low, high = bounds or (0.0, 0.0)
    width = (high - low) / BANDS
    bands: list[list[_Screened]] = [[] for _ in range(BANDS)]
    for group in groups:
        index = int(((group.level or 0.0) - low) / width) if width else 0
        bands[min(BANDS - 1, index)].append(group)
    start, end = _kept_bands(bands)
    levels = bounds and (round(low + start * width, 4), round(low + end * width, 4))
    variance = _variance(bands[start:end])
    if variance is None:
        return TaskScreen(task, levels, left_out="no group")
    kept = [group for band in bands[start:end] for group in band]
    score = fmean(group.score for group in kept)
    truncated = fmean(group.truncated for group in kept)
    if variance.mean >= least_share:
        left_out = ""
    elif truncated >= MOSTLY:
        left_out = "truncated"
    else:
        left_out = "too easy" if score >= MOSTLY else "too hard"
    return TaskScreen(
        task,
        levels,
        variance=variance,
        score=score,
        truncated=truncated,
        left_out=left_out,
    )


def _screened(row: Row) -> _Screened:
    reasons = row["finish_reasons"]
    return _Screened(
        task=row["task"],
        level=row["level"],
        has_variance=has_variance(row["scores"]),
        score=fmean(row["task_scores"]),
        truncated=reasons.count(TRUNCATED) / len(reasons),
    )


def screen_tasks(
    rows: Iterable[Row], bounds: Mapping[str, Bounds | None], least_share: float
) -> list[TaskScreen]:
    """Return the results of each task, the highest share of variance first.

    Args:
        rows: The rows of the groups, as `process` writes them.
        bounds: Task to the range of its levels, None without a range; all tasks of the
            screen, also those without a row.
        least_share: A task with a smaller share of groups with variance is left out;
            in (0, 1].
    """
    groups = grouped(map(_screened, rows), lambda group: group.task)
    screens = [
        _screen_task(task, groups.get(task, ()), bounds[task], least_share)
        for task in sorted(bounds)
    ]
    return sorted(screens, key=lambda screen: (bool(screen.left_out), -screen.share))


def screen_table(screens: Sequence[TaskScreen]) -> Table:
    """Return the results as a table for the terminal."""
    headings = ["groups", "with variance", "levels", "score", "truncated"]
    title = "Groups with variance, with 95 % intervals"
    table = NumberTable("task", headings, title)
    for screen in screens:
        levels = "" if screen.levels is None else "{:g}-{:g}".format(*screen.levels)
        share = screen.variance
        table.add_row(
            screen.task,
            str(share.samples) if share else "0",
            f"{share.mean:.2f} ({share.interval(2)})" if share else "",
            screen.left_out or levels,
            f"{screen.score:.2f}" if share else "",
            f"{screen.truncated:.0%}" if share else "",
            style="dim" if screen.left_out else None,
        )
    return table


# -- the run ---------------------------------------------------------------------------


def _without_curriculum(setting: Any) -> Any:
    """Return a setting of levels in which results move no level."""
    return "random" if setting == "curriculum" else setting


class ScreenRun:
    """A screen of a run.

    Args:
        run: The settings of the run.
        groups_per_task: The number of groups of each task; None for the default.
        rows: The path of the file of rows.

    Attributes:
        config: The settings of the screen.
    """

    def __init__(self, run: Any, groups_per_task: int | None, rows: str) -> None:
        self._run = run
        self._groups_per_task = groups_per_task
        if run.group_size < 2:
            allowed = "at least 2 in a screen: one rollout has no variance"
            raise not_allowed("env.group_size", run.group_size, allowed)
        levels = run.task_levels.items()
        self.config = run.model_copy(
            update={
                "task_choice": "in_turn",
                "shard_index": 0,
                "num_shards": 1,
                "complexity_mode": _without_curriculum(run.complexity_mode),
                "task_levels": {
                    name: _without_curriculum(setting) for name, setting in levels
                },
                "ensure_scores_are_not_same": False,
                "include_messages": True,
                "data_path_to_save_groups": rows,
                "use_wandb": False,
            }
        )

    def begin(self, stream: Stream) -> int:
        """Take the stream of the run; return the number of groups to screen."""
        self._stream = stream
        run = self._run
        groups = self._groups_per_task
        tasks = [choice.task for choice in stream.choices]
        if len(set(tasks)) < len(tasks):
            raise SettingError(
                "env.tasks: one is chosen with several parameters, which a screen"
                " cannot tell apart; keep one of them"
            )
        if groups is None:
            rollouts = run.total_steps * run.batch_size
            share = int(SHARE_OF_RUN * rollouts / run.group_size / len(tasks))
            groups = max(MIN_GROUPS, share)
        counts = f"{counted(groups, 'group')} of each of {counted(len(tasks), 'task')}"
        logger.info("screen: %s", counts)
        return groups * len(tasks)

    @property
    def bounds(self) -> dict[str, Bounds | None]:
        """Task to the range of its levels, None without a range."""
        rules = self._stream.difficulty.rules
        tasks = [choice.task for choice in self._stream.choices]
        return {
            t: rules[t].bounds if rules[t].mode == "random" else None for t in tasks
        }

    def settings(
        self, explicit: Mapping[str, Any], screens: Sequence[TaskScreen]
    ) -> dict[str, Any]:
        """Return the user's explicit settings, with the tasks that are kept."""
        kept = [screen for screen in screens if not screen.left_out]
        difficulty = self._stream.difficulty
        mode = self._run.complexity_mode
        params = {c.task: dict(c.params) for c in self._stream.choices}
        levels: dict[str, Any] = {
            s.task: list(s.levels) if s.levels else difficulty.fixed_level(s.task)
            for s in kept
            if s.task in difficulty.scales
        }
        chosen = {
            "tasks": [s.task for s in kept],
            "task_weights": {s.task: round(s.share, 3) for s in kept},
            "task_levels": {t: level for t, level in levels.items() if level != mode},
            "task_params": {s.task: params[s.task] for s in kept if params[s.task]},
        }
        env = {n: v for n, v in explicit["env"].items() if n not in TASK_SELECTION}
        env |= {name: value for name, value in chosen.items() if value}
        return {**explicit, "env": env}


def check_screen_file(out: Path) -> None:
    """Refuse a file that cannot be written, or an existing one not from `screen`."""
    check_writable("--out", out)
    if out.exists() and not out.read_bytes().startswith(HEAD.encode()):
        raise SettingError(
            f"--out: {shown(str(out))} was not written by `screen`; choose another file"
        )


def screen_text(settings: Mapping[str, Any]) -> str:
    """Return settings as YAML, in a file that the next screen may replace."""
    text = yaml.safe_dump(
        dict(settings), sort_keys=False, default_flow_style=None, width=88
    )
    return f"{HEAD}\n{text}"
