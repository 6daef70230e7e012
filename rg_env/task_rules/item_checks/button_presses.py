"""Shortest sequences of quantum_lock, where every press toggles the light.

So its question says. The library lets a button be pressed only while it has an effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MAX_STATES = 2_000
"""Numbers and lights looked at; where there are more, nothing is found."""


def _pressed(value: int, light: str, button: Mapping[str, Any]) -> int:
    if button["active_state"] not in (light, "any"):
        return value
    by: int = button["value"]
    if button["type"] == "multiply":
        return value * by
    return value + by if button["type"] == "add" else value - by


def is_reached_sooner(
    start: tuple[int, str], target: int, buttons: Sequence[Mapping[str, Any]], than: int
) -> bool:
    """Say whether fewer presses than so many reach a number.

    Args:
        start: The number and the light, "red" or "green".
        target: The number to reach.
        buttons: Of each its `type`, its `value` and the light it needs
            (`active_state`).
        than: Presses of the known sequence.
    """
    seen = newest = {start}
    for _ in range(than - 1):
        reached = {
            (_pressed(value, light, button), "green" if light == "red" else "red")
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
