"""Selection: settings in, choices out; a wrong name meets its nearest."""

import pytest

from rg_env.errors import SettingError
from rg_env.library.registry import LibraryDescription, TaskInfo
from rg_env.stream.task_selection import StreamSettings, TaskChoice, build_selection

CATEGORIES = {
    "gcd": "arithmetic",
    "lcm": "arithmetic",
    "number_sorting": "algorithmic",
    "word_sorting": "algorithmic",
    "maze": "games",
}
LIBRARY = LibraryDescription(
    tasks={
        name: TaskInfo(name, category, {}, has_curriculum=True)
        for name, category in sorted(CATEGORIES.items())
    },
    version="1.0",
    location="somewhere",
)


def select(**settings):
    return build_selection(LIBRARY, StreamSettings(**settings))


def chosen(**settings):
    return [choice.task for choice in select(**settings)]


def weights(**settings):
    return {choice.task: choice.weight for choice in select(**settings)}


def refusal(**settings):
    with pytest.raises(SettingError) as caught:
        select(**settings)
    return str(caught.value)


# -- names -----------------------------------------------------------------------------


def test_by_default_every_task_is_chosen_with_the_same_weight():
    assert weights() == weights(tasks=["*"]) == dict.fromkeys(CATEGORIES, 1.0)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"tasks": ["maze", "gcd"]}, "gcd maze"),
        ({"tasks": ["*_sorting", "gcd"]}, "gcd number_sorting word_sorting"),
        ({"categories": ["arithmetic"], "tasks": ["maze"]}, "gcd lcm maze"),
        ({"exclude_tasks": ["*_sorting"]}, "gcd lcm maze"),
        ({"tasks": ["gcd", "lcm"], "exclude_tasks": ["lcm", "maze"]}, "gcd"),
        ({"exclude_tasks": ["composite"]}, " ".join(sorted(CATEGORIES))),
        ({"tasks": ["composite", "gcd"], "exclude_tasks": ["composite"]}, "gcd"),
    ],
)
def test_names_patterns_and_categories_choose_and_exclusions_come_last(settings, names):
    assert chosen(**settings) == names.split()


# -- the mixture -----------------------------------------------------------------------


def mixture(*datasets, **settings):
    return {
        "tasks": ["composite"],
        "task_params": {"composite": {"datasets": list(datasets)}},
        **settings,
    }


def test_the_mixture_shares_its_weight_by_the_weights_of_its_datasets():
    settings = mixture({"name": "gcd", "weight": 3}, {"name": "maze", "weight": 1})
    assert weights(**settings) == {"gcd": 0.75, "maze": 0.25}


def test_equal_choices_are_one_with_the_weight_of_both():
    settings = mixture({"name": "gcd"}, {"name": "lcm"}, tasks=["composite", "gcd"])
    assert select(**settings) == (TaskChoice("gcd", 1.5), TaskChoice("lcm", 0.5))


# -- refusals --------------------------------------------------------------------------


NOTHING_LEFT = "tasks: nothing is left to sample; choose a task or exclude fewer"
OF_GAMES = (
    "'games' is a category, for `categories`; `tasks --category games` lists its tasks"
)
MAZE = "unknown task 'mase'; did you mean 'maze'?"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"tasks": ["mase"]}, f"tasks: {MAZE}"),
        (
            {"categories": ["arithmetical"]},
            "categories: unknown category 'arithmetical'; did you mean 'arithmetic'?",
        ),
        (
            {"tasks": ["games"]},
            f"tasks: {OF_GAMES}",
        ),
        ({"exclude_tasks": ["mase"]}, f"exclude_tasks: {MAZE}"),
        ({"task_weights": {"mase": 1.0}}, f"task_weights: {MAZE}"),
        (
            {"tasks": ["gcd"], "task_weights": {"maze": 1.0}},
            "task_weights: 'maze' is not among the chosen tasks",
        ),
        ({"exclude_tasks": ["*"]}, NOTHING_LEFT),
        ({"tasks": []}, NOTHING_LEFT),
        (mixture({"name": "gcd"}, exclude_tasks=["gcd"]), NOTHING_LEFT),
    ],
)
def test_a_refusal_names_the_field_what_was_found_and_the_nearest(settings, sentence):
    assert refusal(**settings) == sentence


@pytest.mark.parametrize("weight", [0, float("nan"), float("inf")])
def test_a_weight_must_be_a_positive_number(weight):
    sentence = f"a weight must be above 0, found {float(weight)!r}"
    assert refusal(task_weights={"gcd": weight}) == f"task_weights.gcd: {sentence}"


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"dataset": []}, ": unknown parameter 'dataset'; did you mean 'datasets'?"),
        ({"datasets": []}, NOTHING_LEFT),
        ({"datasets": [{"name": "mase"}]}, f".datasets: {MAZE}"),
        ({"datasets": ["gcd"]}, ".datasets: Expected `object`, got `str` - at `$[0]`"),
        ({"datasets": [{"name": "gcd", "weight": 0}]}, ".datasets: Expected `float`"),
        ({"datasets": [{"name": "gcd", "weights": 2}]}, "unknown field `weights`"),
    ],
)
def test_a_mixture_that_makes_no_sense_is_rejected(params, sentence):
    assert sentence in refusal(tasks=["composite"], task_params={"composite": params})
