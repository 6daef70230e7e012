"""Evaluation items before they are made: ours, and those of the presets."""

import json

import pytest
import reasoning_gym

from rg_env.items.evaluation_specs import SEED, SIZE, evaluation_specs, load_preset
from rg_env.tasks import datasets, library
from rg_env.tasks.curriculum import Curriculum
from rg_env.tasks.difficulty import Difficulty, LevelRule
from rg_env.tasks.sampler import MAX_ATTEMPTS
from rg_env.tasks.scales import load_shipped
from rg_env.tasks.selection import TaskChoice

SCALES = load_shipped().scales
TASKS = ["chain_sum", "gcd", "lcm"]
CHOICES = [TaskChoice(task) for task in TASKS]
PRESETS = ["rg-easy", "rg-hard"]


def difficulty(mode="random", low=0.0, high=1.0):
    rules = {task: LevelRule(mode, low, high) for task in TASKS}
    return Difficulty(SCALES, rules, Curriculum(0.7))


def test_evaluation_keeps_the_defaults_where_levels_move():
    for mode in ("random", "curriculum"):
        found = evaluation_specs(CHOICES, 5, 123, difficulty(mode))
        assert found == evaluation_specs(CHOICES, 5, 123)


def test_no_two_attempts_at_evaluation_items_share_a_seed():
    found = evaluation_specs(CHOICES, 50, 123)
    seeds = [each.seed for attempts in found for each in attempts]
    assert len(seeds) == len(found) * MAX_ATTEMPTS
    assert len(set(seeds)) == len(seeds)


@pytest.mark.parametrize(("level", "step"), [(None, -1), (0.0, 0)])
def test_a_level_of_the_evaluation_wins_over_one_that_is_fixed(level, step):
    fixed = difficulty("fixed", 1.0, 1.0)
    found = evaluation_specs(CHOICES, 4, 123, fixed, level=level)
    firsts = [attempts[0] for attempts in found]
    params = [first.params for first in firsts if first.task == "gcd"]
    assert params == [SCALES["gcd"].steps[step].params] * 4
    assert {first.level for first in firsts} == {1.0 if level is None else level}


def test_a_task_without_a_scale_has_no_level():
    ((found, *_),) = evaluation_specs(
        [TaskChoice("acre")], 1, 123, difficulty(), level=0.5
    )
    assert (found.level, found.params) == (None, {})


# -- presets ---------------------------------------------------------------------------


# acre, gsm_symbolic: an entry is not its seed and index together.
@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("task", ["acre", "gcd", "gsm_symbolic", "word_sorting"])
def test_an_item_of_a_preset_is_that_of_the_published_data_set(name, task):
    specs = load_preset(name).specs([task])
    params = load_preset(name).params[task]
    dataset = reasoning_gym.create_dataset(task, seed=SEED, size=SIZE, **params)
    made = [
        datasets.make_entry(task, s.params, s.seed, True, s.published, s.place)
        for (s,) in specs
    ]
    assert [entry["question"] for entry in made] == [
        dataset[i]["question"] for i in range(SIZE)
    ]


@pytest.mark.parametrize("name", PRESETS)
def test_the_library_accepts_the_parameters_of_a_preset(name):
    preset = load_preset(name)
    assert library.rejected_params(preset.params.items()) is None
    assert preset.changed < preset.params.keys()
    assert json.dumps(dict(preset.params))


def test_a_preset_has_no_item_of_a_task_that_was_not_published():
    assert load_preset("rg-hard").specs(["survo"]) == []


def test_a_published_item_is_refused_where_its_answer_is_wrong_and_only_there():
    specs = load_preset("rg-easy").specs(["syllogism", "string_insertion"])

    def refused(published):
        found = []
        for (spec,) in specs:
            try:
                datasets.make_entry(spec.task, spec.params, spec.seed, True, published)
            except datasets.UnusableEntryError:
                found.append(spec.task)
        return found

    assert {"syllogism", "string_insertion"} == set(refused(published=False))
    assert {"syllogism"} == set(refused(published=True))
