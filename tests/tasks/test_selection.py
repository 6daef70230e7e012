"""Selection: settings in, choices out; a wrong name meets its nearest."""

import pytest

from rg_env.errors import SettingError
from rg_env.tasks.library import LibraryDescription, TaskInfo
from rg_env.tasks.selection import TaskChoice, build_selection

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
    from_submodule=False,
)


def select(**settings):
    return build_selection(LIBRARY, **settings)


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
    assert weights() == dict.fromkeys(CATEGORIES, 1.0)


def test_tasks_are_named():
    assert chosen(tasks=["maze", "gcd"]) == ["gcd", "maze"]


def test_a_pattern_names_all_that_match():
    assert chosen(tasks=["*_sorting", "gcd"]) == [
        "gcd",
        "number_sorting",
        "word_sorting",
    ]


def test_a_category_names_its_tasks_beside_the_named_ones():
    assert chosen(categories=["arithmetic"], tasks=["maze"]) == ["gcd", "lcm", "maze"]


def test_exclusions_are_taken_away_last():
    assert chosen(exclude_tasks=["*_sorting"]) == ["gcd", "lcm", "maze"]
    assert chosen(tasks=["gcd", "lcm"], exclude_tasks=["lcm", "maze"]) == ["gcd"]


def test_a_task_named_twice_is_one_choice():
    assert select(tasks=["gcd", "g*", "gcd"], categories=["arithmetic"]) == (
        TaskChoice("gcd"),
        TaskChoice("lcm"),
    )


def test_the_order_of_the_settings_has_no_part_in_the_choices():
    one = select(tasks=["maze", "gcd"], task_weights={"gcd": 2.0, "maze": 3.0})
    other = select(tasks=["gcd", "maze"], task_weights={"maze": 3.0, "gcd": 2.0})
    assert one == other


def test_weights_and_parameters_go_to_their_task():
    assert select(
        tasks=["gcd", "maze"],
        task_weights={"gcd": 2},
        task_params={"maze": {"max_dist": 10}},
    ) == (TaskChoice("gcd", 2.0), TaskChoice("maze", 1.0, {"max_dist": 10}))


# -- the mixture -----------------------------------------------------------------------


def test_the_mixture_stands_for_all_tasks_and_shares_its_weight():
    shares = weights(tasks=["composite"], task_weights={"composite": 10})
    assert shares == dict.fromkeys(CATEGORIES, 2.0)


def mixture(*datasets, **settings):
    return {
        "tasks": ["composite"],
        "task_params": {"composite": {"datasets": list(datasets)}},
        **settings,
    }


def test_the_mixture_shares_its_weight_by_the_weights_of_its_datasets():
    settings = mixture({"name": "gcd", "weight": 3}, {"name": "maze", "weight": 1})
    assert weights(**settings) == {"gcd": 0.75, "maze": 0.25}


def test_a_dataset_of_the_mixture_brings_its_parameters_but_no_seed_or_size():
    config = {"max_dist": 10, "seed": 1, "size": 500}
    (choice,) = select(**mixture({"name": "maze", "config": config}))
    assert choice == TaskChoice("maze", 1.0, {"max_dist": 10})


def test_the_mixture_stands_beside_named_tasks():
    settings = mixture({"name": "gcd"}, tasks=["composite", "maze"])
    assert weights(**settings) == {"gcd": 1.0, "maze": 1.0}


def test_equal_choices_are_one_with_the_weight_of_both():
    settings = mixture({"name": "gcd"}, {"name": "lcm"}, tasks=["composite", "gcd"])
    assert select(**settings) == (TaskChoice("gcd", 1.5), TaskChoice("lcm", 0.5))


def test_a_task_with_other_parameters_is_another_choice():
    settings = mixture({"name": "gcd", "config": {"a": 1}}, tasks=["composite", "gcd"])
    assert select(**settings) == (TaskChoice("gcd", 1.0, {"a": 1}), TaskChoice("gcd"))


def test_an_excluded_task_is_not_asked_by_the_mixture_either():
    shares = weights(tasks=["composite"], exclude_tasks=["*_sorting"])
    assert shares == pytest.approx(dict.fromkeys(["gcd", "lcm", "maze"], 1 / 3))
    settings = mixture({"name": "gcd"}, {"name": "maze"}, exclude_tasks=["gcd"])
    assert weights(**settings) == {"maze": 1.0}


def test_the_mixture_can_be_excluded_by_name():
    assert chosen(exclude_tasks=["composite"]) == sorted(CATEGORIES)
    assert chosen(tasks=["composite", "gcd"], exclude_tasks=["composite"]) == ["gcd"]


def test_a_pattern_does_not_name_the_mixture():
    assert weights(tasks=["*"]) == dict.fromkeys(CATEGORIES, 1.0)


# -- refusals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"tasks": ["number_sortign"]},
            "tasks: unknown task 'number_sortign'; did you mean 'number_sorting'?",
        ),
        (
            {"tasks": ["gcd", "zzz*"]},
            (
                "tasks: unknown task 'zzz*'; allowed: composite, gcd, lcm, maze,"
                " number_sorting, word_sorting"
            ),
        ),
        (
            {"categories": ["arithmetical"]},
            "categories: unknown category 'arithmetical'; did you mean 'arithmetic'?",
        ),
        (
            {"exclude_tasks": ["mase"]},
            "exclude_tasks: unknown task 'mase'; did you mean 'maze'?",
        ),
        (
            {"task_weights": {"mase": 1.0}},
            "task_weights: unknown task 'mase'; did you mean 'maze'?",
        ),
        (
            {"task_params": {"mase": {}}},
            "task_params: unknown task 'mase'; did you mean 'maze'?",
        ),
        (
            {"tasks": ["gcd"], "task_weights": {"maze": 1.0}},
            "task_weights: 'maze' is not among the chosen tasks",
        ),
        (
            {"exclude_tasks": ["*"]},
            "tasks: nothing is left to sample; choose a task or exclude fewer",
        ),
        (
            {"tasks": []},
            "tasks: nothing is left to sample; choose a task or exclude fewer",
        ),
    ],
)
def test_a_refusal_names_the_field_what_was_found_and_the_nearest(settings, sentence):
    assert refusal(**settings) == sentence


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), "2", True, None])
def test_a_weight_must_be_a_positive_number(weight):
    sentence = f"a weight must be above 0, found {weight!r}"
    assert refusal(task_weights={"gcd": weight}) == f"task_weights.gcd: {sentence}"
    said = refusal(**mixture({"name": "gcd", "weight": weight}))
    assert said == f"task_params.composite.datasets.gcd: {sentence}"


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        (
            {"dataset": []},
            (
                "task_params.composite: unknown parameter 'dataset'; did you mean"
                " 'datasets'?"
            ),
        ),
        (
            {"datasets": []},
            (
                "task_params.composite.datasets: a list of name, weight and config,"
                " found []"
            ),
        ),
        (
            {"datasets": "gcd"},
            (
                "task_params.composite.datasets: a list of name, weight and config,"
                " found 'gcd'"
            ),
        ),
        (
            {"datasets": ["gcd"]},
            "task_params.composite.datasets: each needs a name, found 'gcd'",
        ),
        (
            {"datasets": [{"name": ["gcd"]}]},
            (
                "task_params.composite.datasets: each needs a name,"
                " found {'name': ['gcd']}"
            ),
        ),
        (
            {"datasets": [{"name": "mase"}]},
            "task_params.composite.datasets: unknown task 'mase'; did you mean 'maze'?",
        ),
        (
            {"datasets": [{"name": "composite"}]},
            (
                "task_params.composite.datasets.composite: a mixture in a mixture needs"
                " its datasets"
            ),
        ),
        (
            {"datasets": [{"name": "gcd", "weights": 2}]},
            (
                "task_params.composite.datasets.gcd: unknown key 'weights';"
                " did you mean 'weight'?"
            ),
        ),
        (
            {"datasets": [{"name": "gcd", "config": ["a"]}]},
            (
                "task_params.composite.datasets.gcd: config holds parameters by name,"
                " found ['a']"
            ),
        ),
    ],
)
def test_a_mixture_that_makes_no_sense_is_refused(params, sentence):
    said = refusal(tasks=["composite"], task_params={"composite": params})
    assert said == sentence


def test_a_mixture_of_excluded_tasks_leaves_nothing():
    settings = mixture({"name": "gcd"}, exclude_tasks=["gcd"])
    assert "nothing is left" in refusal(**settings)
