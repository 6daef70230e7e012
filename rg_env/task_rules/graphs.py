"""Rules of the graph tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.task_rules.reading.filler_words import is_filler_beside
from rg_env.task_rules.reading.lists import list_of
from rg_env.task_rules.rules import (
    Entry,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
    seldom_answered,
)

# -- family_relationships --------------------------------------------------------------

_COUPLE = re.compile(
    r"(\w+) is married to (\w+)\.(?: They have (?:a child|children) called ([^.]*)\.)?"
)


def is_parent_in_law(story: str, one: str, other: str) -> bool:
    """Say whether somebody is a parent of the one to whom the other is married."""
    couples = [
        (couple[1], couple[2], set(re.findall(r"\w+", couple[3] or "")))
        for couple in _COUPLE.finditer(story)
    ]
    spouses = {a: b for a, b, _ in couples} | {b: a for a, b, _ in couples}
    return any(
        one in (a, b) and spouses.get(other) in children for a, b, children in couples
    )


def _is_told_as_child(entry: Entry) -> bool:
    pair = entry["metadata"]["person1"], entry["metadata"]["person2"]
    is_in_law = entry["answer"].endswith("-in-law")
    return is_in_law and not is_parent_in_law(entry["question"], *pair)


_NEUTRAL = "Atlas Jayden Kai Logan Nova Phoenix Rain River Sage Sky Winter Zion"
NEUTRAL_NAMES = frozenset(_NEUTRAL.split())
"""Names of the library's men and women of which a reader does not know whose they are;
the question says nobody's sex."""

FAMILY_RELATIONSHIPS = TaskRules(
    "family_relationships",
    item_checks=(
        ItemCheck("answer calls a child-in-law a parent-in-law", _is_told_as_child),
        ItemCheck(
            "answer depends on the sex of somebody with a name of both",
            lambda entry: entry["metadata"]["person1"] in NEUTRAL_NAMES,
        ),
        ItemCheck(
            "answer calls a niece or nephew by the sex of the aunt or uncle",
            lambda entry: entry["answer"] in ("niece", "nephew"),
        ),
    ),
)


# -- quantum_lock ----------------------------------------------------------------------

# Every press toggles the light, so its question says. The library lets a button be
# pressed only while it has an effect.

_PRESSES = re.compile(r"\b[A-Ca-c]+\b|->|→")
_BUTTONS = re.compile(r"\b[A-Ca-c]+\b")


def _only_presses(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score buttons with nothing but filler words beside them.

    The library also reads the letters of those, the B of `boxed` for one, and passes
    over a press without effect, which toggles the light as the question has it.
    """
    if not is_filler_beside(_PRESSES, answer):
        return 0.0
    pressed = " ".join(_BUTTONS.findall(answer))
    return float(library(pressed) == 1.0 or _opens(pressed, entry["metadata"]))


_OTHER_LIGHT = {"red": "green", "green": "red"}
# Numbers and lights looked at; where there are more, nothing is found.
MAX_STATES = 2_000


def _pressed(value: int, light: str, button: Mapping[str, Any]) -> int:
    if button["active_state"] not in (light, "any"):
        return value
    by: int = button["value"]
    if button["type"] == "multiply":
        return value * by
    return value + by if button["type"] == "add" else value - by


def _opens(pressed: str, metadata: Mapping[str, Any]) -> bool:
    """Say whether presses open the lock, as few as the known ones, all toggling."""
    names = pressed.upper().split()
    buttons = {button["name"]: button for button in metadata["buttons"]}
    most = len(metadata.get("solution_path", ()))
    if len(names) > most or not buttons.keys() >= set(names):
        return False
    value, light = metadata["initial_value"], metadata["initial_state"]
    for name in names:
        value = _pressed(value, light, buttons[name])
        light = _OTHER_LIGHT[light]
    return bool(names) and value == metadata["target_value"]


def is_reached_sooner(
    start: tuple[int, str], target: int, buttons: Sequence[Mapping[str, Any]], than: int
) -> bool:
    """Say whether fewer presses `than` so many lead from a number and light to another.

    Of each button there are `type`, `value` and the light it needs, `active_state`.
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
    return is_reached_sooner(start, lock["target_value"], lock["buttons"], presses)


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


# -- shortest_path ---------------------------------------------------------------------

_DIRECTION = re.compile("up|down|left|right|infeasible", re.IGNORECASE)

SHORTEST_PATH = TaskRules(
    "shortest_path",
    notation=list_of(_DIRECTION, " ".join, written=lambda step: step[0].lower()),
    # 38 of 100 at the defaults.
    item_checks=(seldom_answered({"infeasible": 3}),),
    level_repair=LevelRepair(
        {level: {"p_blocked": 0.3} for level in range(4)},
        "with the default's two blocked cells in five there is no path in 51 to 72 of"
        " 100 boards of these sizes",
    ),
)
