"""quantum_lock: presses and talk."""

from __future__ import annotations

from tests.support.fixed_scores import fixed_score

BUTTONS = [
    {"name": "A", "type": "add", "value": 5, "active_state": "any"},
    {"name": "B", "type": "add", "value": 1, "active_state": "any"},
    {"name": "C", "type": "add", "value": 9, "active_state": "any"},
]
ENTRY = {
    "answer": "B → B",
    "metadata": {
        "buttons": BUTTONS,
        "initial_state": "red",
        "initial_value": 0,
        "target_value": 2,
    },
}


def test_letters_of_the_talk_are_no_presses() -> None:
    assert fixed_score("quantum_lock", ENTRY, r"\boxed{\text{B}}") == 0.0
    assert fixed_score("quantum_lock", ENTRY, r"\boxed{\text{B → B}}") == 1.0
