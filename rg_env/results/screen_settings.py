"""The settings of a screen, and those that it writes.

A screen is a run of `process` with the settings of a run of `serve`: requests, lengths,
scores and rewards are the same. But it samples the tasks in turn instead of by weight,
spreads their levels evenly over the range, and uses items that the run will not sample.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from rg_env.errors import SettingError, counted, not_allowed
from rg_env.results.screening import Bounds, TaskScreen
from rg_env.settings.environment_settings import CHOICE_OF_TASKS
from rg_env.stream.draws import Stream

logger = logging.getLogger(__name__)

# By default, a screen samples a share of the run's rollouts, at least 5 groups a task.
SHARE_OF_RUN = 0.02
LEAST_GROUPS = 5

HEAD = "# Written by `screen`"  # a file that begins so may be replaced by a screen


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
            rollouts = max(0, run.total_steps) * max(0, run.batch_size)
            share = int(SHARE_OF_RUN * rollouts / run.group_size / len(tasks))
            each = max(LEAST_GROUPS, share)
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
