"""What `screen` samples for a run of `serve`, and the settings that it writes.

A screen is a run of `process` with the settings of that run: requests, lengths, scores
and rewards are the same. But it samples the tasks in turn instead of by weight, spreads
their levels evenly over the range, and uses items that the run will not sample.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.errors import SettingError, counted, not_allowed
from rg_env.items.run_stream import RunStream
from rg_env.settings.environment_settings import choosing_tasks
from rg_env.settings.setting_types import ChoosesTasks

if TYPE_CHECKING:
    from rg_env.evaluation.screening import Bounds, TaskScreen

logger = logging.getLogger(__name__)

SHARE_OF_RUN = 0.02
"""The share of the run's rollouts that is sampled by default."""

LEAST_GROUPS = 5
"""At least so many groups of each task are sampled by default."""

HEAD = b"# Written by `screen`"
"""A file of settings that begins so may be replaced by a screen."""


def _ranged(setting: Any) -> Any:
    """Return a setting of levels whose levels no result moves."""
    return "random" if setting == "curriculum" else setting


class ScreenRun:
    """One screen.

    Args:
        run: The settings of the run.
        groups_each: Groups of each task; None for `SHARE_OF_RUN`.
        rows: File of the groups.

    Attributes:
        config: The settings of the screen itself.

    Raises:
        SettingError: The result of a screen could not be expressed in these settings.
    """

    def __init__(
        self, run: ReasoningGymEnvConfig, groups_each: int | None, rows: str
    ) -> None:
        self._run, self._groups_each = run, groups_each
        if run.group_size < 2:
            allowed = "at least 2 in a screen: one rollout has no variance"
            raise not_allowed("env.group_size", run.group_size, allowed)
        levels = run.task_levels
        mode = "curriculum" if run.complexity_mode == "curriculum" else "random"
        for name, setting in levels.items():
            if isinstance(setting, str) and setting != mode:
                allowed = f"{mode!r} in a screen: env.complexity_mode moves any range"
                raise not_allowed(f"env.task_levels.{name}", setting, allowed)
        self.config = run.model_copy(
            update={
                "task_choice": "in_turn",
                "shard_index": 0,
                "num_shards": 1,
                "complexity_mode": _ranged(run.complexity_mode),
                "task_levels": {name: _ranged(levels[name]) for name in levels},
                "ensure_scores_are_not_same": False,
                "include_messages": True,
                "data_path_to_save_groups": rows,
                "use_wandb": False,
            }
        )

    def begin(self, items: RunStream) -> int:
        """Take what the run may sample; say and return how many groups are screened.

        Raises:
            SettingError: A mixture has a task with several parameters.
        """
        self._items = items
        tasks = [choice.task for choice in items.stream.choices]
        twice = next((task for task in tasks if tasks.count(task) > 1), None)
        if twice is not None:
            raise SettingError(
                f"env.mixture: {twice} is in it with several parameters, which a screen"
                " cannot tell apart; keep one of them"
            )
        return self._groups_of(len(tasks))

    def _groups_of(self, tasks: int) -> int:
        run, each = self._run, self._groups_each
        rollouts, of_run = max(0, run.total_steps) * max(0, run.batch_size), ""
        if each is None:
            share = int(SHARE_OF_RUN * rollouts / run.group_size / tasks)
            each = max(LEAST_GROUPS, share)
        total = each * tasks
        if rollouts:
            part = total * run.group_size / rollouts
            of_run = f": {part:.1%} of the run's {rollouts:,} rollouts"
        logger.info(
            "screen: %s of %d rollouts for %s, %d each%s",
            *(counted(total, "group"), run.group_size),
            *(counted(tasks, "task"), each, of_run),
        )
        return total

    @property
    def bounds(self) -> dict[str, Bounds | None]:
        """Task to the range of its levels, None where they are not drawn from one."""
        levels, choices = self._items.stream.difficulty, self._items.stream.choices
        rules = {choice.task: levels.rule_of(choice.task) for choice in choices}
        return {t: r.bounds if r.mode == "random" else None for t, r in rules.items()}

    def settings(
        self, given: Mapping[str, Any], tasks: Sequence[TaskScreen]
    ) -> dict[str, Any]:
        """Return the settings of the run with the tasks that are kept, by section.

        Args:
            given: What the user has set, by section.
            tasks: What was found; those that are left out may be among them.
        """
        kept = [task for task in tasks if not task.left_out]
        params = {c.task: dict(c.params) for c in self._items.stream.choices}
        chosen = {
            "tasks": [task.task for task in kept],
            "task_weights": {task.task: round(task.share, 3) for task in kept},
            "task_levels": dict(filter(None, map(self._level_setting, kept))),
            "task_params": {t.task: params[t.task] for t in kept if params[t.task]},
        }
        own = choosing_tasks(*ChoosesTasks)
        env = {n: v for n, v in given["env"].items() if n not in own}
        return {**given, "env": env | {n: v for n, v in chosen.items() if v}}

    def _level_setting(self, task: TaskScreen) -> tuple[str, Any] | None:
        """Return a row of `task_levels`, None where there is nothing to say."""
        levels = self._items.stream.difficulty
        if task.levels is not None:
            return task.task, list(task.levels)
        level = levels.fixed_level(task.task)
        says_all = task.task not in levels.scales or level == self._run.complexity_mode
        return None if says_all else (task.task, level)


def is_other(path: Path) -> bool:
    """Say whether a file is there that is none of a screen."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        return not file.read(len(HEAD)).startswith(HEAD)


def settings_text(settings: Mapping[str, Any], tasks: Sequence[TaskScreen]) -> str:
    """Return settings as YAML, after comments that say what is expected of them."""
    lines = []
    for task in tasks:
        if task.variance is None or task.left_out:
            lines.append(f"  {task.task}: left out, {task.left_out}")
        else:
            interval = task.variance.interval(2)
            groups = counted(task.groups, "group")
            lines.append(f"  {task.task}: {task.share:.2f} ({interval}), {groups}")
    head = f"{HEAD.decode()}; its share of groups with variance, by task:\n"
    said = head + "".join(f"# {line}\n" for line in lines)
    how: dict[str, Any] = {"sort_keys": False, "default_flow_style": None, "width": 88}
    text: str = yaml.safe_dump(dict(settings), **how)
    return said + text
