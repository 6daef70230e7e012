"""Parents in law, and presses that open a lock."""

import pytest

from rg_env.task_rules.graphs import is_parent_in_law, is_reached_sooner
from tests.support.fixed_scores import fixed_score

# -- family_relationships --------------------------------------------------------------

STORY = (
    "Noah is married to Mary. They have a child called Finn. Finn is married to Sky."
    " They have children called Rain and Kai."
)


def test_who_is_parent_of_a_spouse_is_a_parent_in_law():
    assert is_parent_in_law(STORY, "Mary", "Sky")
    assert is_parent_in_law(STORY, "Noah", "Sky")


def test_a_spouse_of_a_child_is_none():
    assert not is_parent_in_law(STORY, "Sky", "Mary")
    assert not is_parent_in_law(STORY, "Mary", "Finn")


# -- quantum_lock ----------------------------------------------------------------------

BUTTONS = [
    {"type": "add", "value": 2, "active_state": "red"},
    {"type": "multiply", "value": 3, "active_state": "green"},
]
START = (0, "red")
LOCK = {
    "answer": "A \u2192 B \u2192 A",
    "metadata": {
        "buttons": [
            {"name": name} | button for name, button in zip("AB", BUTTONS, strict=True)
        ],
        "initial_value": 0,
        "initial_state": "red",
        "target_value": 8,
        "solution_path": ["A", "B", "A"],
    },
}


def test_a_press_without_effect_toggles_the_light():
    # 2, 2 (green to red), 4: a button is pressed for the light alone.
    assert is_reached_sooner(START, 4, BUTTONS, 4)
    assert not is_reached_sooner(START, 4, BUTTONS, 3)


def test_what_takes_too_many_numbers_to_look_at_is_not_said():
    many = [
        {"type": "multiply", "value": n, "active_state": "any"} for n in range(2, 30)
    ]
    assert not is_reached_sooner((1, "red"), 29**20, many, 40)


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [
        ("A \u2192 B \u2192 A", 1.0),  # 2, 6, 8
        ("A \u2192 A \u2192 A \u2192 B", 0.0),  # 2, 2, 4, 12
        ("A \u2192 C", 0.0),
        ("", 0.0),
    ],
)
def test_presses_that_open_the_lock_are_right(answer, fixed):
    assert fixed_score("quantum_lock", LOCK, answer) == fixed


def test_presses_open_the_lock_by_the_question_where_one_has_no_effect():
    lock = {**LOCK["metadata"], "target_value": 4, "solution_path": list("AAAB")}
    entry = {"answer": "A \u2192 B \u2192 B", "metadata": lock}
    assert fixed_score("quantum_lock", entry, "A \u2192 A \u2192 A") == 1.0
    short = {**entry, "metadata": {**lock, "solution_path": ["A", "B"]}}
    assert fixed_score("quantum_lock", short, "A \u2192 A \u2192 A") < 1.0


def test_letters_of_filler_words_are_no_presses():
    steps = {"A": 5, "B": 1, "C": 9}
    buttons = [
        {"name": name, "type": "add", "value": value, "active_state": "any"}
        for name, value in steps.items()
    ]
    start = {"initial_state": "red", "initial_value": 0, "target_value": 2}
    entry = {"answer": "B → B", "metadata": {"buttons": buttons, **start}}
    assert fixed_score("quantum_lock", entry, r"\boxed{\text{B}}") == 0.0
    assert fixed_score("quantum_lock", entry, r"\boxed{\text{B → B}}") == 1.0
