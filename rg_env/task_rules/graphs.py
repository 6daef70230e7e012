"""Rules of the graph tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.task_rules.reading.filler_words import is_filler_beside
from rg_env.task_rules.rules import Entry, ItemCheck, LibraryScore, ScorerFix, TaskRules

# -- family_relationships --------------------------------------------------------------

_COUPLE = re.compile(
    r"(\w+) is married to (\w+)\.(?: They have (?:a child|children) called ([^.]*)\.)?"
)


def is_parent_in_law(story: str, person: str, other: str) -> bool:
    """Return whether a person is a parent of the spouse of another person."""
    couples = _COUPLE.findall(story)
    spouses = {a: b for a, b, _ in couples} | {b: a for a, b, _ in couples}
    return any(
        person in (a, b) and spouses.get(other) in re.findall(r"\w+", children)
        for a, b, children in couples
    )


def _calls_child_a_parent_in_law(entry: Entry) -> bool:
    people = entry["metadata"]
    return entry["answer"].endswith("-in-law") and not is_parent_in_law(
        entry["question"], people["person1"], people["person2"]
    )


_NEUTRAL = "Atlas Jayden Kai Logan Nova Phoenix Rain River Sage Sky Winter Zion"
NEUTRAL_NAMES = frozenset(_NEUTRAL.split())
"""Names that the library gives to men and women alike, so that the story does not
reveal the person's sex."""

FAMILY_RELATIONSHIPS = TaskRules(
    "family_relationships",
    item_checks=(
        ItemCheck(
            "answer calls a child-in-law a parent-in-law", _calls_child_a_parent_in_law
        ),
        ItemCheck(
            "answer depends on the sex of a person with a unisex name",
            lambda entry: entry["metadata"]["person1"] in NEUTRAL_NAMES,
        ),
        ItemCheck(
            "answer calls a niece or nephew by the sex of the aunt or uncle",
            lambda entry: entry["answer"] in ("niece", "nephew"),
        ),
    ),
)


# -- quantum_lock ----------------------------------------------------------------------

_BUTTONS = re.compile(r"\b[A-Ca-c]+\b")
_BUTTONS_AND_ARROWS = re.compile(rf"{_BUTTONS.pattern}|->|→")


def _score_presses(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a list of buttons with nothing but filler words beside them.

    The library skips a press without effect, and also reads letters of filler words,
    such as the B of `boxed`.
    """
    if not is_filler_beside(_BUTTONS_AND_ARROWS, answer):
        return 0.0
    presses = "".join(_BUTTONS.findall(answer)).upper()
    return float(library(presses) == 1.0 or _opens(presses, entry["metadata"]))


_OTHER_LIGHT = {"red": "green", "green": "red"}
# At this number of states, the search for a shorter solution ends without one.
MAX_STATES = 2_000


def _value_after(value: int, light: str, button: Mapping[str, Any]) -> int:
    if button["active_state"] not in (light, "any"):
        return value
    operand: int = button["value"]
    if button["type"] == "multiply":
        return value * operand
    return value + operand if button["type"] == "add" else value - operand


def _opens(presses: str, metadata: Mapping[str, Any]) -> bool:
    """Return whether presses open the lock and are as few as the known solution.

    Every press toggles the light, as the question says.
    """
    buttons = {button["name"]: button for button in metadata["buttons"]}
    max_presses = len(metadata.get("solution_path", ()))
    if len(presses) > max_presses or not buttons.keys() >= set(presses):
        return False
    value = metadata["initial_value"]
    light = metadata["initial_state"]
    for name in presses:
        value = _value_after(value, light, buttons[name])
        light = _OTHER_LIGHT[light]
    return bool(presses) and value == metadata["target_value"]


def has_shorter_solution(
    start: tuple[int, str],
    target: int,
    buttons: Sequence[Mapping[str, Any]],
    presses: int,
) -> bool:
    """Return whether fewer presses lead to a number, by a breadth-first search.

    Args:
        start: The number and the light at the start.
        target: The number to reach.
        buttons: `type`, `value` and `active_state` (the light that it needs) of each.
        presses: The number of presses of the known solution.
    """
    seen = {start}
    frontier = {start}
    for _ in range(presses - 1):
        reached = {
            (_value_after(value, light, button), _OTHER_LIGHT[light])
            for value, light in frontier
            for button in buttons
        }
        if any(value == target for value, _ in reached):
            return True
        frontier = reached - seen
        seen |= reached
        if len(seen) > MAX_STATES:
            break
    return False


def _is_not_the_shortest(entry: Entry) -> bool:
    lock = entry["metadata"]
    start = (lock["initial_value"], lock["initial_state"])
    presses = len(lock["solution_path"])
    return has_shorter_solution(start, lock["target_value"], lock["buttons"], presses)


QUANTUM_LOCK = TaskRules(
    "quantum_lock",
    fix=ScorerFix(
        fault="Ignores everything but the letters A to C, even a second answer;"
        " ignores presses without effect, although they toggle the light; gives 0.5"
        " to any number of unnecessary presses.",
        score=_score_presses,
    ),
    item_checks=(
        ItemCheck(
            "answer is not the shortest if every press toggles the light, as its"
            " question says",
            _is_not_the_shortest,
        ),
    ),
)
