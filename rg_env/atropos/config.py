"""The settings of the environment, as the framework takes them.

Mends B19 of docs/host_defects.md: weights of 0 or less can make the API fail.
"""

from __future__ import annotations

from atroposlib.envs.base import BaseEnvConfig, EvalHandlingEnum
from pydantic import Field

from rg_env.settings.environment_settings import CheckedSettings


class ReasoningGymEnvConfig(CheckedSettings, BaseEnvConfig):
    """Settings of `ReasoningGymEnv`; docs/settings.md explains each.

    Source: atropos 296a0bc, ReasoningGymEnvConfig; differs: ranges are checked, unknown
    fields are refused, and `CheckedSettings` has new ones.
    """

    eval_handling: EvalHandlingEnum = Field(
        default=EvalHandlingEnum.STOP_TRAIN,
        description="Training during an evaluation: STOP_TRAIN, LIMIT_TRAIN or NONE",
    )

    def validate_config(self) -> None:
        """Check more than each field, in a subclass; the environment calls it once."""
