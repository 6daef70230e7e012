"""The settings that decide what a run asks, as this package reads them."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.tasks.baselines import RewardBaseline
from rg_env.tasks.difficulty import LevelSetting
from rg_env.tasks.evaluation_specs import PresetName


class ItemSettings(Protocol):
    """What `ReasoningGymEnvConfig` says of items; its fields explain each."""

    seed: int
    tasks: list[str] | None
    categories: list[str] | None
    exclude_tasks: list[str]
    task_weights: dict[str, float]
    task_params: dict[str, dict[str, Any]]
    mixture: str | None
    task_choice: Literal["weighted", "adaptive"]
    adaptive_floor: float
    shard_index: int
    num_shards: int
    complexity_mode: LevelSetting
    task_levels: dict[str, LevelSetting]
    eval_seed: int
    num_eval_samples_per_task: int
    num_eval_tasks: int | None
    eval_level: float | None
    eval_preset: PresetName | None
    item_deadline_s: float
    scoring_deadline_s: float
    scorer_fixes: bool
    reward_baseline: RewardBaseline

    @property
    def worker_count(self) -> int:
        """Processes that make and score items."""

    @property
    def scoring_rules(self) -> ScoringRules:
        """The settings of scoring that travel to the workers."""
