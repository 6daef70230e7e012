"""`screen`: the tasks and levels that a run can learn from.

A screen is a run of `process` with the settings of a run of `serve`: requests, lengths,
scores and rewards are the same. But it samples the tasks in turn instead of by weight,
spreads their levels evenly over the range, and uses items that the run will not sample.

A model learns from groups whose rewards differ. The range of levels of each task is
divided into bands. Bands at the ends of the range are dropped if they clearly have less
variance than the rest. A task is left out if its groups have too little variance at the
remaining levels.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import yaml
from rich.table import Table

from rg_env.errors import SettingError, counted, not_allowed
from rg_env.results.estimates import Estimate, estimate_share
from rg_env.results.samples import TRUNCATED, Row
from rg_env.results.terminal import NumberTable
from rg_env.run.group import has_variance
from rg_env.settings.environment_settings import CHOICE_OF_TASKS
from rg_env.stream.draws import Stream

logger = logging.getLogger(__name__)

# By default, a screen samples a share of the run's rollouts, at least 5 groups a task.
SHARE_OF_RUN = 0.02
MIN_GROUPS = 5

HEAD = "# Written by `screen`"  # a file that begins so may be replaced by a screen

# Parts of a task's levels: with a hundred groups each share is known to 0.2.
BANDS = 5

# An end of the levels goes if its share is surely less than so much of the others':
# there a group that teaches costs twice as many samples.
POOR = 0.5

MOSTLY = 0.5

Bounds = tuple[float, float]


class _Screened(NamedTuple):
    """A group: its level, whether it has variance, and the means of its completions."""

    level: float | None
    has_variance: bool
    score: float
    truncated: float


Band = Sequence[_Screened]


class TaskScreen(NamedTuple):
    """What a screen shows of a task; its numbers are of the levels that remain.

    Attributes:
        levels: The range that remains; None without a range.
        variance: Share of the groups with variance; None if there is no group.
        score: Mean of the completions' scores, before they are shaped to rewards.
        truncated: Share of the completions that were cut off.
        left_out: Why it is left out, "" if it is not.
    """

    task: str
    levels: Bounds | None
    variance: Estimate | None = None
    score: float = 0.0
    truncated: float = 0.0
    left_out: str = ""

    @property
    def share(self) -> float:
        """Share of groups with variance that a run on these levels is to see."""
        return self.variance.mean if self.variance else 0.0


def _share(bands: Iterable[Band]) -> Estimate | None:
    varied = [group.has_variance for band in bands for group in band]
    return estimate_share(sum(varied), len(varied)) if varied else None


def _is_poor(end: Sequence[Band], rest: Sequence[Band]) -> bool:
    one = _share(end)
    other = _share(rest)
    return bool(one and other and one.high < min(other.low, POOR * other.mean))


def _remaining(bands: Sequence[Band]) -> tuple[int, int]:
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
    task: str, groups: Band, bounds: Bounds | None, least_share: float
) -> TaskScreen:
    low, high = bounds or (0.0, 0.0)
    width = (high - low) / BANDS
    bands: list[list[_Screened]] = [[] for _ in range(BANDS)]
    for group in groups:
        place = int(((group.level or 0.0) - low) / width) if width else 0
        bands[min(BANDS - 1, place)].append(group)
    first, last = _remaining(bands)
    levels = bounds and (round(low + first * width, 4), round(low + last * width, 4))
    variance = _share(bands[first:last])
    if variance is None:
        return TaskScreen(task, levels, left_out="no group")
    kept = [group for band in bands[first:last] for group in band]
    score = fmean(group.score for group in kept)
    truncated = fmean(group.truncated for group in kept)
    left_out = "too easy" if score >= MOSTLY else "too hard"
    left_out = "truncated" if truncated >= MOSTLY else left_out
    left_out = "" if variance.mean >= least_share else left_out
    return TaskScreen(task, levels, variance, score, truncated, left_out)


def screen_tasks(
    rows: Iterable[Row], bounds: Mapping[str, Bounds | None], least_share: float
) -> list[TaskScreen]:
    """Return what a screen shows of each task, the highest share first.

    Args:
        rows: Of its groups, as `process` writes them.
        bounds: Task to the range that its levels were drawn from, evenly, None if they
            were not; tasks without a row are there as well.
        least_share: Of groups with variance, in (0, 1]; a task with less is left out.
    """
    groups: dict[str, list[_Screened]] = {task: [] for task in sorted(bounds)}
    for row in rows:
        if row["task"] in groups:
            reasons = row["finish_reasons"]
            group = _Screened(
                level=row["level"],
                has_variance=has_variance(row["scores"]),
                score=fmean(row["task_scores"]),
                truncated=reasons.count(TRUNCATED) / len(reasons),
            )
            groups[row["task"]].append(group)
    screens = [
        _task_screen(task, of, bounds[task], least_share) for task, of in groups.items()
    ]
    return sorted(screens, key=lambda task: (bool(task.left_out), -task.share))


def screen_table(tasks: Sequence[TaskScreen]) -> Table:
    """Return the results as a table for the terminal."""
    headings = ["groups", "with variance", "levels", "score", "truncated"]
    title = "Groups with variance, with 95 % intervals"
    table = NumberTable("task", headings, title)
    for task in tasks:
        levels = "" if task.levels is None else "{:g}-{:g}".format(*task.levels)
        share = task.variance
        table.add_row(
            task.task,
            str(share.samples) if share else "0",
            f"{share.mean:.2f} ({share.interval(2)})" if share else "",
            task.left_out or levels,
            f"{task.score:.2f}" if share else "",
            f"{task.truncated:.0%}" if share else "",
            style="dim" if task.left_out else None,
        )
    return table


# -- the run ---------------------------------------------------------------------------


def _drawn(setting: Any) -> Any:
    """Return a setting of levels whose levels no result moves."""
    return "random" if setting == "curriculum" else setting


class ScreenRun:
    """One screen of a run; `config` has the settings of the screen itself."""

    def __init__(self, run: Any, groups_each: int | None, rows: str) -> None:
        self._run = run
        self._groups_each = groups_each
        if run.group_size < 2:
            allowed = "at least 2 in a screen: one rollout has no variance"
            raise not_allowed("env.group_size", run.group_size, allowed)
        levels = run.task_levels.items()
        self.config = run.model_copy(
            update={
                "task_choice": "in_turn",
                "shard_index": 0,
                "num_shards": 1,
                "complexity_mode": _drawn(run.complexity_mode),
                "task_levels": {name: _drawn(setting) for name, setting in levels},
                "ensure_scores_are_not_same": False,
                "include_messages": True,
                "data_path_to_save_groups": rows,
                "use_wandb": False,
            }
        )

    def begin(self, stream: Stream) -> int:
        """Return how many groups are screened of what the run may sample."""
        self._stream = stream
        run = self._run
        each = self._groups_each
        tasks = [choice.task for choice in stream.choices]
        if len(set(tasks)) < len(tasks):
            why = "one is chosen with several parameters, which a screen cannot tell"
            raise SettingError(f"env.tasks: {why} apart; keep one of them")
        if each is None:
            rollouts = run.total_steps * run.batch_size
            share = int(SHARE_OF_RUN * rollouts / run.group_size / len(tasks))
            each = max(MIN_GROUPS, share)
        groups = counted(each, "group")
        logger.info("screen: %s of each of %s", groups, counted(len(tasks), "task"))
        return each * len(tasks)

    @property
    def bounds(self) -> dict[str, Bounds | None]:
        """Task to the range of its levels, None where they are not drawn from one."""
        difficulty = self._stream.difficulty
        rules = {c.task: difficulty.rules[c.task] for c in self._stream.choices}
        return {t: r.bounds if r.mode == "random" else None for t, r in rules.items()}

    def settings(
        self, given: Mapping[str, Any], tasks: Sequence[TaskScreen]
    ) -> dict[str, Any]:
        """Return what the user has set, with the tasks that are kept, by section."""
        kept = [task for task in tasks if not task.left_out]
        difficulty = self._stream.difficulty
        mode = self._run.complexity_mode
        params = {c.task: dict(c.params) for c in self._stream.choices}
        levels: dict[str, Any] = {
            t.task: list(t.levels) if t.levels else difficulty.fixed_level(t.task)
            for t in kept
            if t.task in difficulty.scales
        }
        chosen = {
            "tasks": [task.task for task in kept],
            "task_weights": {task.task: round(task.share, 3) for task in kept},
            "task_levels": {t: each for t, each in levels.items() if each != mode},
            "task_params": {t.task: params[t.task] for t in kept if params[t.task]},
        }
        env = {n: v for n, v in given["env"].items() if n not in CHOICE_OF_TASKS}
        return {**given, "env": env | {n: v for n, v in chosen.items() if v}}


def screen_text(settings: Mapping[str, Any]) -> str:
    """Return settings as YAML, in a file that the next screen may replace."""
    text = yaml.safe_dump(
        dict(settings), sort_keys=False, default_flow_style=None, width=88
    )
    return f"{HEAD}\n{text}"
