"""Entries of the library with a wrong or unknowable answer are not sampled."""

import importlib

import pytest

from rg_env.library import datasets, registry
from rg_env.task_rules.table import fault_of, rules_of
from tools.gold_answers import judge

ALIKE = {"max_delta": 1e-6}
PARAMS = {
    "caesar_cipher": {"min_words": 14, "max_words": 14},
    "calendar_arithmetic": {
        "tasks": ["count_business_days", "weekday_of_date_from_first_date"]
    },
    "family_relationships": {"max_family_size": 12},
    "game_of_life_halting": {"grid_size_x": 50, "grid_size_y": 50},
    "needle_haystack": {"max_num_statements": 1000},
    "number_filtering": {"min_decimals": 0, "max_decimals": 1},
    "number_format": ALIKE,
    "time_intervals": {
        "max_time_difference_seconds": 60,
        "max_date_difference_days": 1,
    },
}
ONE_FAULT = """
    basic_arithmetic caesar_cipher color_cube_rotation figlet_font game_of_life_halting
    gsm_symbolic knight_swap letter_counting list_functions mahjong_puzzle
    needle_haystack number_filtering number_format quantum_lock rectangle_count
"""
TWO_FAULTS = "aiw calendar_arithmetic rearc string_manipulation syllogism tsumego"
THREE_FAULTS = "family_relationships time_intervals"
FAULTS = [
    (task, number)
    for number, tasks in enumerate((ONE_FAULT, TWO_FAULTS, THREE_FAULTS), start=1)
    for task in tasks.split()
]


@pytest.mark.slow
@pytest.mark.parametrize(("task", "faults"), FAULTS)
def test_each_fault_of_a_task_is_met_and_refused(task, faults):
    met = set()
    for seed in range(1_000):
        try:
            datasets.make_entry(task, PARAMS.get(task, {}), seed)
        except datasets.UnusableEntryError as error:
            met.add(str(error))
        if len(met) == faults:
            break
    named = {
        f"its {check.fault}" for check in rules_of(task).item_checks if not check.always
    }
    assert len(met) == faults
    assert met <= named


def test_without_the_checks_the_library_s_entry_is_taken_as_it_is():
    with pytest.raises(datasets.UnusableEntryError):
        datasets.make_entry("number_format", ALIKE, 1)
    assert datasets.make_entry("number_format", ALIKE, 1, checked=False)["question"]


def test_an_entry_of_a_mixture_is_checked_as_one_of_its_task():
    registry.describe()
    composite = importlib.import_module("reasoning_gym.composite")
    parts = [composite.DatasetSpec("number_format", 1.0, ALIKE)]
    with pytest.raises(datasets.UnusableEntryError, match="at the digits shown"):
        datasets.make_entry("composite", {"datasets": parts}, 1)


EXAMPLES = """
open   16,85>16 63,24>24         87,28,92>28
closed 16,85>16 63,24>24         87,22,92>22
open   16,85>16 63,24>24 30,4>4  87,28>28
closed 16,85>16 63,24>24 29,4>33 87,28>28
open   39,5>1 18,20>0            5,92,5>2
closed 39,5>1 18,20>0            5,92>1
closed 39,5>1 18,20>0 5,5>2      5,92,5>2
"""
"""Lists of numbers with the number that a rule makes; whether the examples leave open
what it makes of the last list."""


@pytest.mark.parametrize("row", EXAMPLES.strip().splitlines())
def test_a_rule_with_a_number_is_asked_where_the_examples_show_enough_of_it(row):
    state, *pairs = row.split()
    *shown, (last, answer) = [pair.split(">") for pair in pairs]
    told = [f"Input {n}: [{a}]\nOutput {n}: [{b}]" for n, (a, b) in enumerate(shown)]
    question = "\n".join([*told, f"\n\nInput: [{last}]", "Output:\n"])
    entry = {"question": question, "answer": f"[{answer}]"}
    assert (fault_of("list_functions", entry) is None) == (state == "closed")


def test_an_answer_with_a_color_that_nothing_shows_is_not_sampled():
    faults = [
        fault_of("rearc", datasets.make_entry("rearc", {}, seed, checked=False))
        for seed in (7000024, 7000025)
    ]
    assert "colors" in faults[0] and faults[1] is None


SOLVED = """
    aiw calendar_arithmetic color_cube_rotation mahjong_puzzle syllogism time_intervals
    tsumego
"""
"""Tasks in which nothing is left out but items whose answer a solver rejects."""


@pytest.mark.slow
@pytest.mark.parametrize("task", SOLVED.split())
def test_an_item_is_left_out_where_a_solver_rejects_its_answer_and_only_there(task):
    verdicts = {(row["is_right"], row["is_faulty"]) for row in judge(task, 200)}
    assert verdicts == {(True, False), (False, True)}


# -- boards on which doing nothing is right --------------------------------------------


def boxes(*squares):
    state = {str(number): things for number, things in enumerate(squares)}
    return {"metadata": {"initial_state": state}}


def life(first, last):
    return {"question": f"What becomes of it?\n\n{first}.", "answer": last}


def star(edges):
    puzzle = {
        "vertices": list(range(10)),
        "edges": [(0, n + 1) for n in range(edges)],
        "color_options": [1, 2, 3],
    }
    return {"metadata": {"puzzle": puzzle}}


def grid(answer):
    return {"question": "Fill it:\n\n✅❔\n✅❌", "answer": answer}


BOXES = ["box_red", "box_red", "target_red"]
DONE = {
    "boxnet": {
        True: [
            boxes(["box_red", "target_red"], []),
            boxes([*BOXES, "target_red"], ["box_red"]),
        ],
        False: [
            boxes(["box_red"], ["target_red"]),
            boxes(["box_red", "target_blue"], ["target_red", "box_blue"]),
            boxes(BOXES, ["box_blue", "target_red"]),
        ],
    },
    "game_of_life": {
        True: [
            life("[[0,1],\n [0,0]]", "[[0,0],[0,0]]"),
            life("[[0,1],\n [1,0]]", "[[0,1],[1,0]]"),
        ],
        False: [life("[[0,1],\n [1,0]]", "[[0,1],[0,0]]")],
    },
    "graph_color": {True: [star(0), star(4)], False: [star(6)]},
    "modulo_grid": {True: [grid("✅✅\n✅❌")], False: [grid("✅❌\n✅❌")]},
}
"""Boxes at their targets, an empty last board or the first one, few edges, and blanks
that hold the commoner sign of their grid, each with what is not that."""


@pytest.mark.parametrize("task", DONE)
@pytest.mark.parametrize("is_done", [True, False])
def test_a_board_on_which_doing_nothing_is_right_is_told_from_others(task, is_done):
    for entry in DONE[task][is_done]:
        assert bool(fault_of(task, entry)) == is_done, entry
