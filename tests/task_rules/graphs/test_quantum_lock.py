"""Whether fewer presses open a lock of quantum_lock."""

from rg_env.task_rules.graphs.quantum_lock import is_reached_sooner

BUTTONS = [
    {"type": "add", "value": 2, "active_state": "red"},
    {"type": "multiply", "value": 3, "active_state": "green"},
]
START = (0, "red")


def test_a_press_without_effect_toggles_the_light():
    # 2, 2 (green to red), 4: a button is pressed for the light alone.
    assert is_reached_sooner(START, 4, BUTTONS, 4)
    assert not is_reached_sooner(START, 4, BUTTONS, 3)


def test_what_takes_too_many_numbers_to_look_at_is_not_said():
    many = [
        {"type": "multiply", "value": n, "active_state": "any"} for n in range(2, 30)
    ]
    assert not is_reached_sooner((1, "red"), 29**20, many, 40)
