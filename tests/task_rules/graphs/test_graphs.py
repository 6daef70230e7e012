"""Parents in law, and presses that open a lock."""

import pytest

from rg_env.task_rules.graphs import has_shorter_solution, is_parent_in_law
from tests.support.fixed_scores import fixed_score

# -- family_relationships --------------------------------------------------------------

STORY = (
    "Noah is married to Mary. They have a child called Finn. Finn is married to Sky."
    " They have children called Rain and Kai."
)


def test_a_parent_of_a_spouse_is_a_parent_in_law_and_a_spouse_of_a_child_is_not():
    assert is_parent_in_law(STORY, "Mary", "Sky")
    assert is_parent_in_law(STORY, "Noah", "Sky")
    assert not is_parent_in_law(STORY, "Sky", "Mary")
    assert not is_parent_in_law(STORY, "Mary", "Finn")


# -- quantum_lock ----------------------------------------------------------------------

BUTTONS = [
    {"type": "add", "value": 2, "active_state": "red"},
    {"type": "multiply", "value": 3, "active_state": "green"},
]
START = (0, "red")


def test_a_press_without_effect_toggles_the_light():
    # 2, 2 (green to red), 4: a button is pressed only for the light.
    assert has_shorter_solution(START, 4, BUTTONS, 4)
    assert not has_shorter_solution(START, 4, BUTTONS, 3)


def test_a_search_of_too_many_states_reports_no_shorter_solution():
    many = [
        {"type": "multiply", "value": n, "active_state": "any"} for n in range(2, 30)
    ]
    assert not has_shorter_solution((1, "red"), 29**20, many, 40)


PRESSES = r"""
8 ABA  1.0 A → B → A                   # 2, 6, 8
8 ABA  0.0 A → A → A → B               # 2, 2, 4, 12
8 ABA  0.0 A → C                       #
8 ABA  0.0                             #
4 AAAB 1.0 A → A → A                   # the second has no effect but on the light
4 AAAB 1.0 aaa                         # the same
4 AB   0.0 A → A → A                   #
6 BAAB 0.0 \boxed{\text{A → A → B}}    # the B of `boxed` is not a press
6 AB   1.0 \boxed{\text{A → B}}        #
"""
"""The number to reach, the reference path, a score and its answer."""


@pytest.mark.parametrize("row", PRESSES.strip().splitlines())
def test_presses_that_open_the_lock_by_the_question_are_right(row):
    case, _, _ = row.partition("#")
    target, path, score, *answer = case.split()
    buttons = [BUTTONS[0] | {"name": "A"}, BUTTONS[1] | {"name": "B"}]
    start = {"initial_value": 0, "initial_state": "red", "target_value": int(target)}
    lock = {"buttons": buttons, "solution_path": [*path], **start}
    entry = {"answer": " → ".join(path), "metadata": lock}
    found = fixed_score("quantum_lock", entry, " ".join(answer))
    assert found == float(score)
