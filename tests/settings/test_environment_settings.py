"""What settings affect, and the shard of an instance of a launcher."""

import pytest

from rg_env.errors import SettingError
from rg_env.settings.environment_settings import (
    GROUPS,
    LAUNCHERS,
    CheckedSettings,
    affecting,
    shard_of_launcher,
)
from rg_env.settings.setting_checks import Affects


def test_every_field_affects_one_thing():
    fields = [name for what in Affects for name in affecting(what)]
    assert sorted(fields) == sorted(CheckedSettings.model_fields)
    assert sorted(fields) == sorted(n for group in GROUPS for n in group.model_fields)


def test_a_resumed_run_shares_only_settings_that_affect_items():
    settings = CheckedSettings(tasks=["gcd"], temperature=0.5).stream_settings
    assert settings["tasks"] == ["gcd"] and settings["eval_seed"] == 123
    assert settings.keys().isdisjoint(["temperature", "adaptive_floor", "use_wandb"])


VARIABLES = """
SLURM_PROCID=2 SLURM_NTASKS=4                         | 2 4
SLURM_PROCID=2 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=3  | 2 3
SLURM_PROCID=2 SLURM_NTASKS=4 RANK=1 WORLD_SIZE=3     | 2 4
SLURM_PROCID=2 RANK=1 WORLD_SIZE=3                    | 1 3
RANK=2 WORLD_SIZE=                                    | 0 1
"""
"""Variables of launchers, and the shard with the number of shards."""


@pytest.fixture
def launched(monkeypatch):
    """Set the variables of a launcher, and of no other."""

    def launch(variables):
        for name in sum(LAUNCHERS, ()):
            monkeypatch.delenv(name, raising=False)
        for variable in variables.split():
            monkeypatch.setenv(*variable.split("="))

    return launch


@pytest.mark.parametrize("row", VARIABLES.strip().splitlines())
def test_the_shard_is_that_of_the_launcher_or_of_the_setting(launched, row):
    variables, shard = row.split("|")
    launched(variables)
    config = CheckedSettings()
    assert [config.shard_index, config.num_shards] == [*map(int, shard.split())]
    config = CheckedSettings(shard_index=0, num_shards=1)
    assert (config.shard_index, config.num_shards) == (0, 1)


@pytest.mark.parametrize(("rank", "count"), [("x", "4"), ("4", "4"), ("-1", "3")])
def test_contradictory_variables_are_refused(launched, rank, count):
    launched(f"RANK={rank} WORLD_SIZE={count}")
    with pytest.raises(SettingError, match=f"RANK: '{rank}' is not allowed"):
        shard_of_launcher()
