"""The sampler: a draw is a pure function of seed, split and global index."""

import itertools
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.errors import SettingError
from rg_env.tasks.sampler import (
    LAUNCHERS,
    draw,
    draw_in_turn,
    entry_seed,
    shard_of_launcher,
    training_seed,
)

SEEDS = st.integers(-(2**63), 2**63)
INDICES = st.integers(0, 2**40)


# -- entry seeds -----------------------------------------------------------------------


@given(SEEDS, INDICES, st.integers(1, 2**31 - 1))
def test_indices_less_than_two_to_the_31_apart_give_different_seeds(key, index, apart):
    near, far = (entry_seed("train", str(key), i) for i in (index, index + apart))
    assert near != far


@given(SEEDS, INDICES, SEEDS, INDICES)
def test_training_and_evaluation_never_share_a_seed(key, index, eval_key, eval_index):
    train = entry_seed("train", str(key), index)
    evaluation = entry_seed("evaluation", str(eval_key), eval_index)
    assert 0 <= train < 2**31 <= evaluation < 2**32


# -- draws -----------------------------------------------------------------------------


def draws(weights, count, seed=42):
    return [draw(seed, index, weights) for index in range(count)]


@pytest.mark.processes
def test_the_hash_seed_has_no_part_in_a_draw(repo_root):
    program = (
        "from rg_env.tasks.sampler import draw\n"
        "print([draw(42, index, [1, 2, 3]) for index in range(50)])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=repo_root,
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "random")
    }
    assert said == {f"{draws([1, 2, 3], 50)}\n".encode()}


# A run that is continued under a newer version of the project must meet the same items.
def test_the_stream_is_this_one():
    said = [(d[0], training_seed(42, n)) for n, d in enumerate(draws([1, 2, 3], 3))]
    assert said == [(2, 368105599), (2, 901163382), (1, 1894642959)]


# -- weights ---------------------------------------------------------------------------


def test_choices_come_in_proportion_to_their_weights():
    counts = Counter(d[0] for d in draws([1, 2, 5], 8_000))
    assert [counts[i] / 1_000 for i in range(3)] == pytest.approx([1, 2, 5], rel=0.1)


# -- draws in turn ---------------------------------------------------------------------


@given(SEEDS, st.integers(1, 5), st.integers(1, 40))
def test_turns_spread_the_levels_of_each_choice_evenly(seed, choices, turns):
    for choice in range(choices):
        points = sorted(
            draw_in_turn(seed, turn * choices + choice, choices)[1]
            for turn in range(turns)
        )
        around = [*points, points[0] + 1.0]
        assert max(b - a for a, b in itertools.pairwise(around)) < 2.7 / turns + 1e-9


# -- shards ----------------------------------------------------------------------------

SLURM = {"SLURM_PROCID": "2", "SLURM_NTASKS": "4"}
TORCHRUN = {"RANK": "1", "WORLD_SIZE": "3"}


@pytest.fixture
def launched(monkeypatch):
    """Set the variables of a launcher, and of no other; return the settings then."""

    def launch(variables, **given):
        for name in sum(LAUNCHERS, ()):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        config = ReasoningGymEnvConfig(**given)
        return config.shard_index, config.num_shards

    return launch


@pytest.mark.parametrize(
    ("variables", "shard"),
    [
        ({}, (0, 1)),
        (SLURM, (2, 4)),
        (SLURM | {"SLURM_STEP_NUM_TASKS": "3"}, (2, 3)),
        (TORCHRUN, (1, 3)),
        (SLURM | TORCHRUN, (2, 4)),
        ({"SLURM_PROCID": "2"}, (0, 1)),
        ({"RANK": "2", "WORLD_SIZE": ""}, (0, 1)),
    ],
    ids=str,
)
def test_slurm_or_torchrun_number_the_instances_and_a_setting_wins(
    launched, variables, shard
):
    assert launched(variables) == shard
    assert launched(variables, shard_index=0, num_shards=1) == (0, 1)


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"SLURM_PROCID": "x", "SLURM_NTASKS": "4"}, "SLURM_PROCID: 'x' is not"),
        ({"SLURM_PROCID": "4", "SLURM_NTASKS": "4"}, "below SLURM_NTASKS"),
        ({"RANK": "-1", "WORLD_SIZE": "3"}, "RANK: '-1' is not allowed"),
        ({"RANK": "0", "WORLD_SIZE": "9" * 5000}, "RANK"),
    ],
)
def test_variables_that_cannot_be_are_refused_by_name(launched, variables, named):
    launched(variables, shard_index=0, num_shards=1)
    with pytest.raises(SettingError, match=named):
        shard_of_launcher()
