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


def is_parent_in_law(story: str, one: str, other: str) -> bool:
    """Return whether one person is a parent of the other person's spouse."""
    couples = [
        (couple[1], couple[2], set(re.findall(r"\w+", couple[3] or "")))
        for couple in _COUPLE.finditer(story)
    ]
    spouses = {a: b for a, b, _ in couples} | {b: a for a, b, _ in couples}
    return any(
        one in (a, b) and spouses.get(other) in children for a, b, children in couples
    )


def _is_told_as_child(entry: Entry) -> bool:
    people = entry["metadata"]
    return entry["answer"].endswith("-in-law") and not is_parent_in_law(
        entry["question"], people["person1"], people["person2"]
    )


_NEUTRAL = "Atlas Jayden Kai Logan Nova Phoenix Rain River Sage Sky Winter Zion"
NEUTRAL_NAMES = frozenset(_NEUTRAL.split())
"""Names that the library gives to both men and women; the question tells no sex."""

FAMILY_RELATIONSHIPS = TaskRules(
    "family_relationships",
    item_checks=(
        ItemCheck("answer calls a child-in-law a parent-in-law", _is_told_as_child),
        ItemCheck(
            "answer depends on the sex of a person with a name of both sexes",
            lambda entry: entry["metadata"]["person1"] in NEUTRAL_NAMES,
        ),
        ItemCheck(
            "answer calls a niece or nephew by the sex of the aunt or uncle",
            lambda entry: entry["answer"] in ("niece", "nephew"),
        ),
    ),
)


# -- quantum_lock ----------------------------------------------------------------------

# The question says that every press toggles the light. The library does not count
# presses without effect.

_PRESSES = re.compile(r"\b[A-Ca-c]+\b|->|→")
_BUTTONS = re.compile(r"\b[A-Ca-c]+\b")


def _only_presses(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a list of buttons with nothing but filler words beside them.

    The library also reads letters of filler words, such as the B of `boxed`, and skips
    a press without effect, although the question says that it toggles the light.
    """
    if not is_filler_beside(_PRESSES, answer):
        return 0.0
    pressed = " ".join(_BUTTONS.findall(answer))
    return float(library(pressed) == 1.0 or _opens(pressed, entry["metadata"]))


_OTHER_LIGHT = {"red": "green", "green": "red"}
# The search for a shorter solution stops at this number of states.
MAX_STATES = 2_000


def _pressed(value: int, light: str, button: Mapping[str, Any]) -> int:
    if button["active_state"] not in (light, "any"):
        return value
    by: int = button["value"]
    if button["type"] == "multiply":
        return value * by
    return value + by if button["type"] == "add" else value - by


def _opens(pressed: str, metadata: Mapping[str, Any]) -> bool:
    """Return whether presses open the lock and are as few as the known solution."""
    names = pressed.upper().split()
    buttons = {button["name"]: button for button in metadata["buttons"]}
    most = len(metadata.get("solution_path", ()))
    if len(names) > most or not buttons.keys() >= set(names):
        return False
    value = metadata["initial_value"]
    light = metadata["initial_state"]
    for name in names:
        value = _pressed(value, light, buttons[name])
        light = _OTHER_LIGHT[light]
    return bool(names) and value == metadata["target_value"]


def is_reached_sooner(
    start: tuple[int, str], target: int, buttons: Sequence[Mapping[str, Any]], than: int
) -> bool:
    """Return whether fewer presses than `than` lead to a number.

    Args:
        start: The number and the light at the start.
        target: The number to reach.
        buttons: `type`, `value` and `active_state` (the light that it needs) of each.
        than: The number of presses of the known solution.
    """
    seen = newest = {start}
    for _ in range(than - 1):
        reached = {
            (_pressed(value, light, button), _OTHER_LIGHT[light])
            for value, light in newest
            for button in buttons
        }
        if any(value == target for value, _ in reached):
            return True
        newest = reached - seen
        seen = seen | reached
        if not newest or len(seen) > MAX_STATES:
            return False
    return False


def _is_not_the_shortest(entry: Entry) -> bool:
    lock = entry["metadata"]
    start = (lock["initial_value"], lock["initial_state"])
    presses = len(lock["solution_path"])
    return is_reached_sooner(start, lock["target_value"], lock["buttons"], than=presses)


QUANTUM_LOCK = TaskRules(
    "quantum_lock",
    fix=ScorerFix(
        fault="Ignores everything but the letters A to C, even a second answer;"
        " ignores presses without effect, although they toggle the light; gives 0.5"
        " to any number of unnecessary presses.",
        score=_only_presses,
    ),
    item_checks=(
        ItemCheck(
            "answer is not the shortest if, as it says, every press toggles the light",
            _is_not_the_shortest,
        ),
    ),
)
