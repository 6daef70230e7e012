"""The level of an item, from the settings, the task's scale and the results.

A setting says which level on a task's scale the next item has:

    None                the library's default parameters
    "random"            a uniform level for each item
    "curriculum"        a level that moves with the results
    0.7                 always this level
    [0.2, 0.6]          a level in this range: uniform, or the bounds of the curriculum

`build_rules` turns the settings into a rule for each task. `Difficulty` joins the
rules, the scales (scales.py) and the levels that results move (curriculum.py).
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
    """The rule for the level of a task's items: no level, one level, or a range.

    A fixed level is both `low` and `high`.
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
    """Return a checked level setting, also from the text of a command line.

    Raises:
        SettingError: It is not one of those that are `ALLOWED`.

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


def _build_rule(setting: LevelSetting, range_mode: ModeName) -> LevelRule:
    if setting is None:
        return LevelRule()
    if isinstance(setting, str):
        return LevelRule(setting)
    if isinstance(setting, list | tuple):
        return LevelRule(range_mode, *setting)
    return LevelRule("fixed", setting, setting)


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
        known: All registered tasks.
        no_scale: Reason why a task has no scale, by task.
        mode: The setting of all tasks.
        task_levels: Setting by name or pattern. A name wins over a pattern, a later
            pattern over an earlier one.

    Raises:
        SettingError: A name matches nothing, or a task that is named has no scale.
    """
    settings: dict[str, LevelSetting] = dict.fromkeys(tasks, mode)
    names_last = sorted(task_levels.items(), key=lambda row: row[0] in known)
    for pattern, setting in names_last:
        matched = fnmatch.filter(tasks, pattern)
        if not matched and pattern in known:
            raise SettingError(
                f"{pattern!r} is not among the chosen tasks", "task_levels"
            )
        if not matched:
            raise unknown_name("task_levels", pattern, known, "task")
        if pattern in no_scale and setting is not None:
            raise SettingError(
                f"{pattern!r} has no difficulty scale ({no_scale[pattern]}); allowed:"
                " None",
                "task_levels",
            )
        settings.update(dict.fromkeys(matched, setting))
    range_mode: ModeName = "curriculum" if mode == "curriculum" else "random"
    return {
        task: LevelRule() if task in no_scale else _build_rule(setting, range_mode)
        for task, setting in settings.items()
    }


@dataclasses.dataclass(frozen=True)
class Difficulty:
    """The level that an item of a task gets, and the parameters of a level.

    A task without a scale keeps the library's defaults. The curriculum has the levels
    of tasks that follow it, and those that were set from outside.
    """

    scales: Mapping[str, Scale]
    rules: Mapping[str, LevelRule]
    curriculum: Curriculum

    def level_at(self, task: str, point: float) -> float | None:
        """Return the level of a task's next item, None for the library's defaults.

        `point`, in [0, 1), is where in its range a random level lies.
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
        """Return the level of a task with a fixed level, None for other tasks."""
        rule = self.rules[task] if task in self.scales else LevelRule()
        return rule.low if rule.mode == "fixed" else None

    def expected_ms(self, task: str, level: float | None) -> float:
        """Return about how long an item takes to make; 0 if that is unknown."""
        if task not in self.scales:
            return 0.0
        scale = self.scales[task]
        steps = list(scale.steps)
        if level is not None:
            steps = [scale.step_at(level, mix) for mix in (0, 1)]
        return max(step.item_ms or 0.0 for step in steps)

    def params_at(self, task: str, level: float | None, seed: int) -> dict[str, Any]:
        """Return the dataset parameters of a level that differ from the defaults.

        The entry's seed chooses between the two steps around a level.
        """
        if level is None or task not in self.scales:
            return {}
        return dict(self.scales[task].step_at(level, mix_of_seed(seed)).params)


NO_LEVELS = Difficulty({}, {}, Curriculum(0.5))
"""Every item has the library's default parameters."""
