"""Entries of the library whose answer is wrong or cannot be known are not asked."""

import importlib

import pytest

from rg_env.task_rules.table import rules_of
from rg_env.tasks import library

HALTING = {"grid_size_x": 50, "grid_size_y": 50}
ALIKE = {"max_delta": 1e-6}
SOON = {"max_time_difference_seconds": 60, "max_date_difference_days": 1}
RULES = {"tasks": ["count_business_days", "weekday_of_date_from_first_date"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "params", "faults"),
    [
        ("aiw", {}, 2),
        ("basic_arithmetic", {}, 1),
        ("calendar_arithmetic", RULES, 2),
        ("color_cube_rotation", {}, 1),
        ("family_relationships", {"max_family_size": 12}, 3),
        ("game_of_life_halting", HALTING, 1),
        ("knight_swap", {}, 1),
        ("letter_counting", {}, 1),
        ("mahjong_puzzle", {}, 1),
        ("needle_haystack", {"max_num_statements": 1000}, 1),
        ("number_filtering", {"min_decimals": 0, "max_decimals": 1}, 1),
        ("number_format", ALIKE, 1),
        ("quantum_lock", {}, 1),
        ("rectangle_count", {}, 1),
        ("string_manipulation", {}, 2),
        ("syllogism", {}, 2),
        ("time_intervals", SOON, 2),
        ("tsumego", {}, 2),
    ],
)
def test_each_fault_of_a_task_is_met_and_refused(task, params, faults):
    met = set()
    for seed in range(1_000):
        try:
            library.make_entry(task, params, seed)
        except library.UnusableEntryError as error:
            met.add(str(error))
        if len(met) == faults:
            break
    named = {
        f"its {check.fault}" for check in rules_of(task).item_checks if not check.always
    }
    assert len(met) == faults
    assert met <= named


def test_without_the_checks_the_library_s_entry_is_taken_as_it_is():
    with pytest.raises(library.UnusableEntryError):
        library.make_entry("number_format", ALIKE, 1)
    assert library.make_entry("number_format", ALIKE, 1, checked=False)["question"]


def test_an_entry_of_a_mixture_is_checked_as_one_of_its_task():
    library.describe()
    composite = importlib.import_module("reasoning_gym.composite")
    parts = [composite.DatasetSpec("number_format", 1.0, ALIKE)]
    with pytest.raises(library.UnusableEntryError, match="at the digits shown"):
        library.make_entry("composite", {"datasets": parts}, 1)
