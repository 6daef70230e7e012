"""From a draw to dataset parameters: the level of an item, and the step it falls on.

    setting     what the user asks for, by task or for all: see level_settings.py
    scale       the steps of a task and what each sets: see scales.py
    level       a place on the scale, 0 to 1; where results move it, curriculum.py does

This joins the three for one run, and asks nobody else.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from rg_env.tasks.curriculum import Curriculum
from rg_env.tasks.level_settings import LevelRule
from rg_env.tasks.sampler import mix_of_seed
from rg_env.tasks.scales import Scale

NO_RULE = LevelRule()


class Difficulty:
    """Which level an item of a task gets, and what that level means.

    Args:
        scales: Task to scale; a task without one keeps the library's defaults.
        rules: Task to rule; a task without one keeps the library's defaults.
        curriculum: The levels of tasks with the rule "curriculum", and of those that
            were set from outside.
    """

    def __init__(
        self,
        scales: Mapping[str, Scale],
        rules: Mapping[str, LevelRule],
        curriculum: Curriculum,
    ) -> None:
        self.scales = scales
        self.rules = rules
        self.curriculum = curriculum

    def rule_of(self, task: str) -> LevelRule:
        """Return the rule of a task."""
        return self.rules.get(task, NO_RULE)

    def follows_results(self, task: str) -> bool:
        """Say whether results move the level of a task."""
        return task in self.scales and self.rule_of(task).mode == "curriculum"

    def level_at(self, task: str, point: float) -> float | None:
        """Return the level that a task's next item gets.

        Args:
            task: A chosen task.
            point: Where a level drawn from a range falls, in [0, 1).

        Returns:
            A level in [0, 1]; None for the library's default parameters.
        """
        if task not in self.scales:
            return None
        rule = self.rule_of(task)
        if rule.mode == "curriculum" or task in self.curriculum.levels:
            return self.curriculum.level_of(task)
        if rule.mode == "random":
            return rule.uniform(point)
        return rule.low if rule.mode == "fixed" else None

    def fixed_level(self, task: str) -> float | None:
        """Return the level of a task whose level never moves, None for the others."""
        rule = self.rule_of(task)
        return rule.low if rule.mode == "fixed" and task in self.scales else None

    def expected_ms(self, task: str, level: float | None) -> float:
        """Return about how long an item takes to make; 0 where nothing is known."""
        if task not in self.scales:
            return 0.0
        steps = self.scales[task].steps
        if level is None:
            return statistics.median(step.item_ms for step in steps)
        either = (self.scales[task].step_at(level, mix) for mix in (0.0, 1.0))
        return max(step.item_ms for step in either)

    def params_at(self, task: str, level: float | None, seed: int) -> dict[str, Any]:
        """Return the dataset parameters of a level that differ from the defaults.

        Args:
            task: A chosen task.
            level: In [0, 1], or None.
            seed: The entry's; it decides which of two steps a level between falls on.
        """
        if level is None or task not in self.scales:
            return {}
        return dict(self.scales[task].step_at(level, mix_of_seed(seed)).params)
