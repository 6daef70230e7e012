"""Progress: the newest group means of each task with their levels, and their number."""

import json

import pytest

from rg_env.tasks.task_history import HISTORY_GROUPS, TaskHistory


def progress(*means, task="gcd"):
    made = TaskHistory()
    for mean in means:
        made.record_group(task, mean)
    return made


def test_only_the_newest_group_means_are_kept_and_all_are_counted():
    made = progress(*range(HISTORY_GROUPS + 5))
    assert list(made.history["gcd"]) == list(range(5, HISTORY_GROUPS + 5))
    assert made.group_counts == {"gcd": HISTORY_GROUPS + 5}


def test_the_levels_are_kept_beside_the_means_in_the_same_order():
    made = TaskHistory()
    for number in range(HISTORY_GROUPS + 5):
        made.record_group("gcd", number / 20, None if number % 2 else number / 40)
    found = [(result.mean_score, result.level) for result in made.results("gcd")]
    numbers = range(5, HISTORY_GROUPS + 5)
    assert found == [(n / 20, None if n % 2 else n / 40) for n in numbers]


def test_groups_with_variance_are_counted_by_task():
    made = TaskHistory()
    for task, has_variance in (("gcd", True), ("gcd", False), ("lcm", False)):
        made.record_group(task, 0.5, has_variance=has_variance)
    assert made.variance_counts == {"gcd": 1, "lcm": 0}


def test_the_recent_accuracy_is_the_mean_of_the_five_newest_groups():
    assert progress(0, 0, 0, 1, 1, 1, 1, 0.5).recent_accuracy("gcd") == 0.9
    assert progress(0.25, 0.75).recent_accuracy("gcd") == 0.5


def test_the_stats_are_over_tasks_not_over_groups():
    made = progress(1.0, 1.0, 1.0)
    made.record_group("lcm", 0.0)
    assert made.stats() == {"total_tasks_tracked": 2, "avg_recent_accuracy": 0.5}


def test_before_the_first_group_there_are_no_results_but_stats():
    made = TaskHistory()
    assert (made.results("gcd"), made.recent_accuracy("gcd")) == ([], None)
    assert made.stats() == {"total_tasks_tracked": 0, "avg_recent_accuracy": 0.0}


def test_a_state_survives_json_and_continues():
    first = progress(*(i / 20 for i in range(12)))
    second = TaskHistory()
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for made in (first, second):
        made.record_group("gcd", 1.0)
    assert second.state_dict() == first.state_dict()


def broken(**fields):
    return progress(0.5).state_dict() | fields


@pytest.mark.parametrize(
    "state",
    [
        {},
        [],
        None,
        {"history": {}},
        broken(history=[]),
        broken(history={"gcd": 0.5}),
        broken(history={"gcd": [None]}),
        broken(history={"gcd": [1.5]}),
        broken(history={"gcd": [float("nan")]}),
        broken(history={"gcd": [0.5, 0.5]}),
        broken(level_history={}),
        broken(level_history={"gcd": ["0.5"]}),
        broken(level_history={"gcd": [-0.1]}),
        broken(group_counts={"gcd": None}),
        broken(group_counts={"gcd": -1}),
        broken(variance_counts={"gcd": 0.5}),
        broken(variance_counts=None),
    ],
)
def test_a_broken_state_is_refused_and_changes_nothing(state):
    made = progress(0.5)
    before = made.state_dict()
    with pytest.raises(ValueError, match=r"Expected|missing|as many"):
        made.load_state_dict(state)
    assert made.state_dict() == before
