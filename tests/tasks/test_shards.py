"""Which instance this is, as the launcher says."""

import pytest

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.errors import SettingError
from rg_env.tasks.shards import LAUNCHERS, Shard, from_launcher

SLURM = {"SLURM_PROCID": "2", "SLURM_NTASKS": "4"}
TORCHRUN = {"RANK": "1", "WORLD_SIZE": "3"}


@pytest.fixture
def launched(monkeypatch):
    """Set the variables of a launcher, and of no other."""

    def launch(**variables):
        for names in LAUNCHERS:
            for name in names:
                monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return ReasoningGymEnvConfig()

    return launch


def test_without_a_launcher_an_instance_is_alone():
    assert from_launcher({}) == Shard(0, 1)


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        (SLURM, (2, 4)),
        (SLURM | {"SLURM_STEP_NUM_TASKS": "3"}, (2, 3)),
        (TORCHRUN, (1, 3)),
        (SLURM | TORCHRUN, (2, 4)),
    ],
)
def test_slurm_or_torchrun_number_the_instances(variables, place):
    found = from_launcher(variables)
    assert (found.index, found.count) == place


@pytest.mark.parametrize(
    "variables", [{"SLURM_PROCID": "2"}, {"RANK": "2", "WORLD_SIZE": ""}]
)
def test_a_rank_alone_says_nothing(variables):
    assert from_launcher(variables) == Shard()


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        (
            {"SLURM_PROCID": "x", "SLURM_NTASKS": "4"},
            "SLURM_PROCID: 'x' is not allowed",
        ),
        ({"SLURM_PROCID": "4", "SLURM_NTASKS": "4"}, "below SLURM_NTASKS"),
        ({"RANK": "-1", "WORLD_SIZE": "3"}, "RANK: '-1' is not allowed"),
        ({"RANK": "0", "WORLD_SIZE": "nan"}, "WORLD_SIZE 'nan'"),
        ({"RANK": "0", "WORLD_SIZE": "9" * 5000}, "RANK"),
        ({"RANK": "\u0663", "WORLD_SIZE": "4"}, "RANK"),
    ],
)
def test_variables_that_cannot_be_are_refused_by_name(variables, named):
    with pytest.raises(SettingError, match=named):
        from_launcher(variables)


def test_the_settings_take_the_launchers_place(launched):
    config = launched(**SLURM)
    assert (config.shard_index, config.num_shards) == (2, 4)


def test_a_setting_wins_over_the_launcher(launched):
    launched(**SLURM)
    config = ReasoningGymEnvConfig(shard_index=0, num_shards=1)
    assert (config.shard_index, config.num_shards) == (0, 1)
