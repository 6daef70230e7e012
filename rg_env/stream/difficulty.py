"""The level of an item, from the settings, the task's scale and the results.

A setting says where on a task's scale its next item comes from:

    None                the library's default parameters
    "random"            a uniform level for each item
    "curriculum"        a level that moves with the results
    0.7                 always this level
    [0.2, 0.6]          a level in this range: uniform, or the bounds of the curriculum

`build_rules` turns the settings into one rule a task; `Difficulty` joins the rules,
the scales (scales.py) and the levels that results move (curriculum.py) for one run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import typing
from collections.abc import Collection, Mapping
from typing import Any, Literal

from rg_env.errors import SettingError, unexpected, unknown_name
from rg_env.library.scales import Scale
from rg_env.stream.curriculum import Curriculum
from rg_env.stream.seeds import mix_of_seed

ModeName = Literal["random", "curriculum"]
LevelSetting = ModeName | float | list[float] | tuple[float, float] | None

MODES: tuple[ModeName, ...] = ("random", "curriculum")
ALLOWED = "None, 'random', 'curriculum', a level in 0 to 1, or a range [low, high]"


@dataclasses.dataclass(frozen=True)
class LevelRule:
    """The rule for the level of a task's items: none, one level, or one of a range.

    A fixed level is `low` and `high` at once.
    """

    mode: Literal["default", "fixed", "random", "curriculum"] = "default"
    low: float = 0.0
    high: float = 1.0

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest level."""
        return self.low, self.high


def _is_level(value: Any) -> bool:
    return type(value) in (int, float) and 0.0 <= value <= 1.0


def level_setting(value: Any, field: str = "") -> LevelSetting:
    """Return a level setting, also from the text of a command line; or SettingError.

    Example:
        >>> level_setting("0.7"), level_setting([0.2, 0.6])
        (0.7, [0.2, 0.6])
    """
    with contextlib.suppress(ValueError):
        value = float(value) if isinstance(value, str) else value
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2
    is_range = is_pair and all(map(_is_level, value)) and value[0] <= value[1]
    if is_range or value is None or value in MODES or _is_level(value):
        return typing.cast(LevelSetting, value)
    raise SettingError(unexpected(value, ALLOWED), field)


def _rule(setting: LevelSetting, mode_of_range: ModeName) -> LevelRule:
    if isinstance(setting, list | tuple):
        return LevelRule(mode_of_range, *setting)
    if isinstance(setting, str):
        return LevelRule(setting)
    return LevelRule() if setting is None else LevelRule("fixed", setting, setting)


def build_rules(
    tasks: Collection[str],
    known: Collection[str],
    no_scale: Mapping[str, str],
    mode: LevelSetting,
    task_levels: Mapping[str, LevelSetting],
) -> dict[str, LevelRule]:
    """Return the rule of each chosen task; one without a scale keeps the defaults.

    Args:
        tasks: The chosen tasks.
        known: Every registered task, for the nearest name.
        no_scale: Task to the reason why it has no scale.
        mode: The setting of all tasks.
        task_levels: Name or pattern to setting. A name wins over a pattern, a later
            pattern over an earlier one.

    Raises:
        SettingError: A name matches nothing, or a task that is named has no scale.
    """
    settings: dict[str, LevelSetting] = dict.fromkeys(tasks, mode)
    by_pattern = sorted(task_levels.items(), key=lambda row: row[0] in known)
    for pattern, setting in by_pattern:
        matched = fnmatch.filter(tasks, pattern)
        if not matched and pattern in known:
            reason = f"{pattern!r} is not among the chosen tasks"
            raise SettingError(reason, "task_levels")
        if not matched:
            raise unknown_name("task_levels", pattern, known, "task")
        if pattern in no_scale and setting is not None:
            reason = f"{pattern!r} has no difficulty scale ({no_scale[pattern]})"
            raise SettingError(f"{reason}; allowed: None", "task_levels")
        settings.update(dict.fromkeys(matched, setting))
    moves: ModeName = "curriculum" if mode == "curriculum" else "random"
    return {
        task: LevelRule() if task in no_scale else _rule(setting, moves)
        for task, setting in settings.items()
    }


@dataclasses.dataclass(frozen=True)
class Difficulty:
    """The level that an item of a task gets, and the parameters of a level.

    A task without a scale keeps the library's defaults. The curriculum holds
    the levels of tasks that follow it, and of those that were set from outside.
    """

    scales: Mapping[str, Scale]
    rules: Mapping[str, LevelRule]
    curriculum: Curriculum

    def level_at(self, task: str, point: float) -> float | None:
        """Return the level of a task's next item, None for the library's defaults.

        `point` says where a level drawn from a range falls, in [0, 1).
        """
        if task not in self.scales:
            return None
        rule = self.rules[task]
        if rule.mode == "curriculum" or task in self.curriculum:
            return self.curriculum.level_of(task)
        if rule.mode == "random":
            return rule.low + point * (rule.high - rule.low)
        return rule.low if rule.mode == "fixed" else None

    def fixed_level(self, task: str) -> float | None:
        """Return the level of a task with a fixed level, None for the others."""
        rule = self.rules[task] if task in self.scales else LevelRule()
        return rule.low if rule.mode == "fixed" else None

    def expected_ms(self, task: str, level: float | None) -> float:
        """Return about how long an item takes to make; 0 where nothing is known."""
        if task not in self.scales:
            return 0.0
        scale = self.scales[task]
        steps = list(scale.steps)
        if level is not None:
            steps = [scale.step_at(level, mix) for mix in (0, 1)]
        return max(step.item_ms or 0.0 for step in steps)

    def params_at(self, task: str, level: float | None, seed: int) -> dict[str, Any]:
        """Return the dataset parameters of a level that differ from the defaults.

        The entry's seed decides which of two steps a level between falls on.
        """
        if level is None or task not in self.scales:
            return {}
        return dict(self.scales[task].step_at(level, mix_of_seed(seed)).params)


NO_LEVELS = Difficulty({}, {}, Curriculum(0.5))
"""Every item has the library's default parameters."""
