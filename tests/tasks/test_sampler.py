"""The sampler: a draw is a pure function of seed, split and global index."""

import itertools
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.tasks.sampler import Sampler, entry_seed

SEEDS = st.integers(-(2**63), 2**63)
INDICES = st.integers(0, 2**40)
SPLITS = ["train", "evaluation"]


def draws(sampler, count):
    return [sampler.next_draw() for _ in range(count)]


# -- entry seeds -----------------------------------------------------------------------


@pytest.mark.parametrize("split", SPLITS)
def test_no_two_entries_of_a_stream_share_a_seed(split):
    seeds = {entry_seed(split, "42", index) for index in range(200_000)}
    assert len(seeds) == 200_000


@given(SEEDS, INDICES, st.integers(1, 2**31 - 1))
def test_indices_less_than_two_to_the_31_apart_give_different_seeds(key, index, apart):
    near, far = (entry_seed("train", str(key), i) for i in (index, index + apart))
    assert near != far


@given(SEEDS, INDICES, SEEDS, INDICES)
def test_training_and_evaluation_never_share_a_seed(key, index, eval_key, eval_index):
    train = entry_seed("train", str(key), index)
    evaluation = entry_seed("evaluation", str(eval_key), eval_index)
    assert 0 <= train < 2**31 <= evaluation < 2**32


def test_neighbouring_indices_do_not_give_neighbouring_seeds():
    seeds = [entry_seed("train", "42", index) for index in range(2_000)]
    steps = [abs(b - a) for a, b in itertools.pairwise(seeds)]
    assert min(steps) > 1
    assert sum(steps) / len(steps) > 2**31 / 4


def test_neighbouring_run_seeds_are_no_shifted_copies():
    first = {entry_seed("train", "1", index) for index in range(2_000)}
    second = {entry_seed("train", "2", index) for index in range(2_000)}
    assert len(first & second) < 20


# -- draws -----------------------------------------------------------------------------


def test_a_draw_depends_on_nothing_but_its_position():
    sampler = Sampler([1, 2, 3], seed=42)
    later = sampler.draw_at(7)
    assert draws(sampler, 8)[7] == later
    assert sampler.draw_at(7) == later
    assert Sampler([1, 2, 3], seed=42).draw_at(7) == later


def test_using_the_generator_of_a_draw_changes_no_draw():
    sampler = Sampler([1, 2, 3], seed=42)
    before = sampler.draw_at(3)
    sampler.rng_at(3).random()
    assert sampler.draw_at(3) == before


def test_another_seed_is_another_stream():
    one, other = (Sampler([1] * 10, seed=seed) for seed in (42, 43))
    assert not {one.seed_of(n) for n in range(50)} & {
        other.seed_of(n) for n in range(50)
    }
    assert [d.choice for d in draws(one, 50)] != [d.choice for d in draws(other, 50)]


@pytest.mark.parametrize("num_shards", [2, 3, 7])
def test_shards_part_the_stream_without_gap_or_overlap(num_shards):
    whole = draws(Sampler([1, 5], seed=42), 10 * num_shards)
    shards = [
        draws(Sampler([1, 5], 42, index, num_shards), 10) for index in range(num_shards)
    ]
    parts = sorted((d for shard in shards for d in shard), key=lambda d: d.index)
    assert parts == whole


def test_the_indices_of_a_shard_are_its_place_and_every_nth_after_it():
    sampler = Sampler([1], seed=42, shard_index=2, num_shards=5)
    assert [d.index for d in draws(sampler, 3)] == [2, 7, 12]


def test_a_resumed_sampler_continues_at_the_next_draw():
    whole = draws(Sampler([1, 2], seed=42), 20)
    sampler = Sampler([1, 2], seed=42)
    draws(sampler, 12)
    resumed = Sampler([1, 2], seed=42)
    resumed.go_to(sampler.position)
    assert draws(resumed, 8) == whole[12:]


@pytest.mark.parametrize("position", [-1, "3", None, [], 1.0])
def test_a_position_that_makes_no_sense_is_refused(position):
    with pytest.raises(ValueError, match="position must be at least 0"):
        Sampler([1], seed=42).go_to(position)


@pytest.mark.processes
def test_the_hash_seed_has_no_part_in_a_draw(repo_root):
    program = (
        "from rg_env.tasks.sampler import Sampler\n"
        "sampler = Sampler([1, 2, 3], seed=42, shard_index=1, num_shards=3)\n"
        "print([sampler.next_draw() for _ in range(50)])"
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
    here = draws(Sampler([1, 2, 3], seed=42, shard_index=1, num_shards=3), 50)
    assert said == {f"{here}\n".encode()}


# A run that is continued under a newer version of the project must meet the same items.
def test_the_stream_is_this_one():
    sampler = Sampler([1, 2, 3], seed=42)
    said = [(d.choice, sampler.seed_of(d.index)) for d in draws(sampler, 3)]
    assert said == [(2, 368105599), (2, 901163382), (1, 1894642959)]


# -- weights ---------------------------------------------------------------------------


def test_choices_come_in_proportion_to_their_weights():
    counts = Counter(d.choice for d in draws(Sampler([1, 2, 5], seed=42), 8_000))
    assert [counts[i] / 1_000 for i in range(3)] == pytest.approx([1, 2, 5], rel=0.1)


def test_the_scale_of_the_weights_does_not_matter():
    assert draws(Sampler([1, 3], seed=42), 50) == draws(Sampler([4, 12], seed=42), 50)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20), SEEDS, INDICES)
def test_every_draw_falls_on_a_choice(weights, seed, position):
    assert 0 <= Sampler(weights, seed).draw_at(position).choice < len(weights)
