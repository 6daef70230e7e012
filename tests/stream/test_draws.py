"""What the items of a stream are, before they are made."""

from collections import Counter

import pytest

from rg_env.library.scales import load_shipped
from rg_env.stream.adaptive_weights import AdaptiveWeights
from rg_env.stream.curriculum import Curriculum
from rg_env.stream.difficulty import NO_LEVELS, Difficulty, LevelRule
from rg_env.stream.draws import Stream
from rg_env.stream.task_selection import StreamSettings, TaskChoice

SCALES = load_shipped().scales
TASKS = ["chain_sum", "gcd", "lcm"]
CHOICES = [TaskChoice(task) for task in TASKS]


def difficulty(mode="random", low=0.0, high=1.0):
    rules = {task: LevelRule(mode, low, high) for task in TASKS}
    return Difficulty(SCALES, rules, Curriculum(0.7))


def stream(levels=NO_LEVELS, adaptive=None, choices=CHOICES, **how):
    return Stream(choices, StreamSettings(seed=42, **how), levels, adaptive)


def items(source, count=200):
    draws = map(source.draw, range(count))
    return [next(source.attempts(drawn)) for drawn in draws]


def levels_of(source, task="gcd"):
    return sorted(item.level for item in items(source) if item.task == task)


def test_the_users_parameters_win_over_the_level():
    choices = [TaskChoice("gcd", params={"max_numbers": 9})]
    (item,) = items(stream(difficulty("fixed", 1.0, 1.0), choices=choices), 1)
    assert item.params["max_numbers"] == 9
    assert set(item.params) > {"max_numbers"}


@pytest.mark.parametrize("mode", ["default", "random", "fixed", "curriculum"])
def test_a_level_set_from_outside_holds_in_every_mode_from_then_on(mode):
    levels = difficulty(mode)
    source = stream(levels)
    if mode == "curriculum":
        assert {item.level for item in items(source)} == {0.3}
    levels.curriculum["gcd"] = 0.8
    assert set(levels_of(source)) == {0.8}


@pytest.mark.parametrize("num_shards", [2, 3, 7])
def test_shards_part_the_stream_without_gap_or_overlap(num_shards):
    shards = [
        items(stream(shard_index=index, num_shards=num_shards), 10)
        for index in range(num_shards)
    ]
    found = {item.index: item.task for shard in shards for item in shard}
    assert found == {item.index: item.task for item in items(stream(), 10 * num_shards)}
    assert [i.index for i in shards[1][:3]] == [1, 1 + num_shards, 1 + 2 * num_shards]


def test_in_turn_no_weight_counts_and_levels_lie_evenly():
    choices = [TaskChoice("gcd", 100.0), TaskChoice("lcm")]
    source = stream(
        difficulty("random", 0.2, 0.6), choices=choices, task_choice="in_turn"
    )
    found = items(source, 10)
    assert [item.task for item in found] == ["gcd", "lcm"] * 5
    levels = sorted(item.level for item in found if item.task == "gcd")
    assert 0.2 <= levels[0] < levels[1] - 0.04
    assert levels[-1] > 0.45


def test_adaptive_weights_multiply_those_of_the_choices():
    adaptive = AdaptiveWeights(floor=0.1)
    for _ in range(200):
        adaptive.record("gcd", False)
    counts = Counter(item.task for item in items(stream(adaptive=adaptive), 4_000))
    assert counts["gcd"] / counts["lcm"] == pytest.approx(0.1, abs=0.04)
