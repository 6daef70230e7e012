"""The settings of the environment, as the framework takes them.

Mends B19 of docs/host_defects.md: a weight of 0 makes the API fail for everybody.
"""

from __future__ import annotations

import os
from typing import Any

from atroposlib.envs.base import BaseEnvConfig, EvalHandlingEnum
from pydantic import Field

from rg_env.atropos.settings import CheckedSettings
from rg_env.scoring.scoring_rules import ScoringRules

FEWEST_WORKERS, MOST_WORKERS = 2, 8
"""Bounds of the default number of workers; one is kept free for scoring."""

STREAM_FIELDS = (
    *("seed", "eval_seed", "num_eval_samples_per_task", "num_eval_tasks"),
    *("eval_level", "eval_preset"),
    *("complexity_mode", "tasks", "categories", "exclude_tasks", "task_weights"),
    *("task_params", "mixture", "task_levels", "task_choice"),
    *("shard_index", "num_shards"),
)
"""What a resumed run must share with the run it continues."""


class ReasoningGymEnvConfig(CheckedSettings, BaseEnvConfig):
    """Settings of `ReasoningGymEnv`; docs/settings.md explains each.

    Source: atropos 296a0bc, ReasoningGymEnvConfig; differs: ranges are checked, unknown
    fields are refused, and `CheckedSettings` has new ones.
    """

    eval_handling: EvalHandlingEnum = Field(
        default=EvalHandlingEnum.STOP_TRAIN,
        description="Training during an evaluation: STOP_TRAIN, LIMIT_TRAIN or NONE",
    )

    @property
    def worker_count(self) -> int:
        """Processes that make and score items."""
        if self.num_workers is not None:
            return self.num_workers
        return max(FEWEST_WORKERS, min(MOST_WORKERS, (os.cpu_count() or 1) // 2))

    @property
    def worker_memory_bytes(self) -> int | None:
        """Address space of a worker, None for no limit."""
        megabytes = self.worker_memory_mb
        return None if megabytes is None else megabytes * 1024**2

    @property
    def stream_settings(self) -> dict[str, Any]:
        """The settings that decide the items of a run, as plain values."""
        settings: dict[str, Any] = self.model_dump(
            mode="json", include=set(STREAM_FIELDS)
        )
        return settings

    @property
    def scoring_rules(self) -> ScoringRules:
        """The settings of scoring that travel to the workers."""
        return ScoringRules(
            self.scorer_fixes, self.max_answer_chars, self.normalize_answers
        )
