"""The stream of items before they are made."""

from collections import Counter

import pytest

from rg_env.tasks.adaptive import AdaptiveWeights
from rg_env.tasks.curriculum import Curriculum
from rg_env.tasks.difficulty import NO_LEVELS, Difficulty, LevelRule
from rg_env.tasks.item_stream import ItemStream
from rg_env.tasks.sampler import MAX_ATTEMPTS
from rg_env.tasks.scales import load_shipped
from rg_env.tasks.selection import TaskChoice

SCALES = load_shipped().scales
TASKS = ["chain_sum", "gcd", "lcm"]
CHOICES = [TaskChoice(task) for task in TASKS]


def difficulty(mode="random", low=0.0, high=1.0):
    rules = {task: LevelRule(mode, low, high) for task in TASKS}
    return Difficulty(SCALES, rules, Curriculum(0.7))


def stream(levels=NO_LEVELS, adaptive=None, choices=CHOICES, **shard):
    return ItemStream(choices, 42, difficulty=levels, adaptive=adaptive, **shard)


def draws(source, count=200):
    return [source.next_draw() for _ in range(count)]


def specs(source, count=200):
    return list(map(source.attempt, draws(source, count)))


def test_without_difficulty_the_parameters_are_the_defaults():
    assert {(s.level, *s.params) for s in specs(stream())} == {(None,)}


def test_random_levels_spread_over_the_range():
    levels = sorted(
        spec.level for spec in specs(stream(difficulty("random", 0.2, 0.6)))
    )
    assert 0.2 <= levels[0] < 0.25
    assert 0.55 < levels[-1] <= 0.6


def test_a_level_sets_the_parameters_of_its_step():
    steps = SCALES["gcd"].steps
    for level, step in ((0.0, steps[0]), (1.0, steps[-1])):
        source = stream(difficulty("fixed", level, level))
        found = [s.params for s in specs(source) if s.task == "gcd"]
        assert all(params == step.params for params in found)


def test_the_users_parameters_win_over_the_level():
    choices = [TaskChoice("gcd", params={"max_numbers": 9})]
    source = stream(difficulty("fixed", 1.0, 1.0), choices=choices)
    (params,) = (spec.params for spec in specs(source, 1))
    assert params["max_numbers"] == 9
    assert set(params) > {"max_numbers"}


def test_a_curriculum_level_is_that_of_the_moment_of_drawing():
    levels = difficulty("curriculum")
    source = stream(levels)
    before = specs(source, 30)
    levels.curriculum.set_level("gcd", 0.9)
    after = specs(source, 30)
    assert {s.level for s in before} == {0.3}
    assert {s.level for s in after if s.task == "gcd"} == {0.9}


def test_a_level_set_from_outside_holds_in_every_mode():
    for mode in ("default", "random", "fixed"):
        levels = difficulty(mode)
        levels.curriculum.levels["gcd"] = 0.8
        found = {s.level for s in specs(stream(levels)) if s.task == "gcd"}
        assert found == {0.8}, mode


def test_a_draw_can_be_had_again_from_what_was_decided_of_it():
    drawn = draws(stream(difficulty("curriculum")), 50)
    again = stream(difficulty("curriculum"))
    assert [again.drawn(one.position, one.choice, one.level) for one in drawn] == drawn


def test_seeds_do_not_depend_on_levels_or_weights():
    def seeds(source):
        return [spec.seed for spec in specs(source)]

    adaptive = AdaptiveWeights(TASKS)
    for _ in range(30):
        adaptive.record("gcd", False)
    assert seeds(stream()) == seeds(stream(difficulty(), adaptive))


def test_what_an_earlier_run_has_sampled_is_of_the_task_that_it_had_then():
    source = stream()
    source.sampled = {1: ("lcm", 17), 2: ("gcd", 18)}
    assert [(one.task, one.sampled) for one in draws(source, 3)][1:] == [
        ("lcm", 17),
        ("gcd", 18),
    ]
    assert not source.sampled


def test_adaptive_weights_multiply_those_of_the_choices():
    adaptive = AdaptiveWeights(TASKS, floor=0.1)
    for _ in range(200):
        adaptive.record("gcd", False)
    drawn = Counter(s.task for s in specs(stream(adaptive=adaptive), 4_000))
    assert drawn["gcd"] / drawn["lcm"] == pytest.approx(0.1, abs=0.04)


def test_attempts_of_a_draw_share_no_seed_with_any_other():
    source = stream()
    drawn = draws(source, 1_500)
    seeds = [spec.seed for one in drawn for spec in source.attempts(one)]
    assert len(set(seeds)) == len(seeds) == 1_500 * MAX_ATTEMPTS


# -- the place in the stream -----------------------------------------------------------


@pytest.mark.parametrize("num_shards", [2, 3, 7])
def test_shards_part_the_stream_without_gap_or_overlap(num_shards):
    shards = [
        specs(stream(shard_index=index, num_shards=num_shards), 10)
        for index in range(num_shards)
    ]
    found = {s.index: s.task for shard in shards for s in shard}
    assert found == {s.index: s.task for s in specs(stream(), 10 * num_shards)}
    assert [s.index for s in shards[1][:3]] == [1, 1 + num_shards, 1 + 2 * num_shards]


def test_a_resumed_stream_continues_at_the_next_draw():
    first, resumed = stream(difficulty()), stream(difficulty())
    specs(first, 12)
    resumed.position = first.position
    assert specs(resumed, 8) == specs(stream(difficulty()), 20)[12:]


@pytest.mark.parametrize("position", [-1, "3", None, [], 1.0])
def test_a_position_that_makes_no_sense_is_refused(position):
    with pytest.raises(ValueError, match="position must be at least 0"):
        stream().position = position


def test_in_turn_no_weight_counts_and_levels_lie_evenly():
    choices = [TaskChoice("gcd", 100.0), TaskChoice("lcm")]
    source = stream(difficulty("random", 0.2, 0.6), choices=choices, in_turn=True)
    found = specs(source, 10)
    assert [spec.task for spec in found] == ["gcd", "lcm"] * 5
    levels = sorted(spec.level for spec in found if spec.task == "gcd")
    assert 0.2 <= levels[0] < levels[1] - 0.04
    assert levels[-1] > 0.45


def test_the_same_seed_has_the_same_turns():
    first, second = (stream(difficulty("random"), in_turn=True) for _ in range(2))
    assert specs(first, 20) == specs(second, 20)
    assert specs(first, 1) != specs(stream(difficulty("random")), 1)
