"""What fields decide, which resumed runs and reports go by."""

from __future__ import annotations

from rg_env.settings.environment_settings import GROUPS, CheckedSettings, affecting
from rg_env.settings.setting_types import Affects


def test_every_field_affects_one_thing() -> None:
    fields = [name for what in Affects for name in affecting(what)]
    assert sorted(fields) == sorted(CheckedSettings.model_fields)
    assert sorted(fields) == sorted(n for group in GROUPS for n in group.model_fields)


def test_a_resumed_run_shares_what_affects_items_and_nothing_else() -> None:
    settings = CheckedSettings(tasks=["gcd"], temperature=0.5).stream_settings
    assert settings["tasks"] == ["gcd"] and settings["eval_seed"] == 123
    assert settings.keys().isdisjoint(["temperature", "adaptive_floor", "use_wandb"])
