"""boxnet: plans that carry each box to the target of its color.

The library skips impossible actions, and raises if a box would leave the grid. So one
plan that carries everything along a path through the whole grid and back solves every
item of that size. This scorer plays the plan by the same rules, and each action must be
possible when it is played.
"""

from __future__ import annotations

import json
import re
from typing import Any

from rg_env.task_rules.reading.values import as_json
from rg_env.task_rules.rules import (
    Entry,
    Guard,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

Position = tuple[float, float]
Squares = dict[Position, list[str]]
"""The boxes and targets of each square."""

_COORDINATE = r"\d{1,9}(?:\.\d{1,9})?"
_POSITION = rf"\[({_COORDINATE}),\s*({_COORDINATE})\]"
_MOVE = re.compile(r"move\(([^,()]*),\s([^()]*)\)\s*")


def _read_square(name: str) -> Position:
    """Return the position in the metadata's `0.5_1.5`."""
    row, column = re.findall(_COORDINATE, name)
    return float(row), float(column)


def _read_position(kind: str, text: str) -> Position | None:
    """Return the position in a plan's `Agent[0.5, 1.5]`, None for another text."""
    match = re.fullmatch(kind + _POSITION, text.strip())
    return None if match is None else (float(match[1]), float(match[2]))


def _move_box(squares: Squares, start: Position, box: str, end: Position) -> bool:
    """Carry a box to an adjacent square; return whether that was possible."""
    distances = sorted((abs(start[0] - end[0]), abs(start[1] - end[1])))
    if distances != [0.0, 1.0] or end not in squares:
        return False
    squares[start].remove(box)
    squares[end].append(box)
    return True


def _target(box: str) -> str:
    return f"target_{box[4:]}"


def _play_action(squares: Squares, agent: str, action: Any) -> bool:
    """Play one action of one agent; return whether it was possible."""
    position = _read_position("Agent", agent)
    move = _MOVE.fullmatch(action) if isinstance(action, str) else None
    if position is None or move is None:
        return False
    things = squares.get(position, [])
    box, goal = move.groups()
    if box not in things or not box.startswith("box_"):
        return False
    if "square" in goal:
        end = _read_position("square", goal)
        return end is not None and _move_box(squares, position, box, end)
    if goal != _target(box) or goal not in things:
        return False
    things.remove(box)
    things.remove(goal)
    return True


def _play_step(squares: Squares, step: Any) -> bool:
    """Play the actions of a step in turn; return whether all were possible."""
    if not isinstance(step, tuple):
        return False
    agents = {_read_position("Agent", agent) for agent, _ in step}
    if len(agents) < len(step):
        return False
    return all(_play_action(squares, agent, action) for agent, action in step)


def _boxes(*squares: list[str]) -> list[str]:
    return [box for things in squares for box in things if box.startswith("box_")]


def _score_plan(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a plan that delivers all boxes and has only possible actions.

    The library's scorer is not called, because it may raise.
    """
    try:
        plan = json.loads(answer, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return 0.0
    if not isinstance(plan, list):
        return 0.0
    initial = entry["metadata"]["initial_state"]
    squares = {_read_square(name): list(things) for name, things in initial.items()}
    is_possible = all(_play_step(squares, step) for step in plan)
    return float(is_possible and not _boxes(*squares.values()))


# A text up to this length is cheap to match.
_SAFE_CHARS = 2_000

MAX_STRING_CHARS = 200


def _why_not(answer: str, gold: str | None) -> str | None:
    """Return why a plan is rejected, None if it is admitted.

    The library's pattern for `move(box, place)` takes quadratic time for one string.
    """
    if len(answer) <= _SAFE_CHARS:
        return None
    if "\\" in answer:
        return "a backslash in a long plan"
    if max(map(len, answer.split('"'))) > MAX_STRING_CHARS:
        return f"a string of more than {MAX_STRING_CHARS} characters"
    return None


# The largest share of boxes that may start at their targets.
MAX_AT_TARGETS = 1 / 3


def _starts_at_targets(entry: Entry) -> bool:
    squares = entry["metadata"]["initial_state"].values()
    at_targets = sum(
        min(things.count(box), things.count(_target(box)))
        for things in squares
        for box in set(_boxes(things))
    )
    return bool(at_targets > MAX_AT_TARGETS * len(_boxes(*squares)))


BOXNET = TaskRules(
    "boxnet",
    # The scorer takes quadratic time for a long string.
    guard=Guard(_why_not),
    notation=as_json,
    fix=ScorerFix(
        fault="Ignores impossible actions, so one fixed plan solves every item of a"
        " size; gives credit for boxes that start at their targets, and 0.9 if one"
        " box of ten is left; fails if a box would leave the grid.",
        score=_score_plan,
    ),
    item_checks=(
        ItemCheck(
            "boxes start at their targets, more than one in three",
            _starts_at_targets,
            answer_stands=True,
        ),
    ),
    level_repair=LevelRepair(
        {level: {"min_row_num": 2, "min_column_num": 2} for level in range(9)},
        "every level asks for grids from one row on, and on a grid of one or two"
        " squares most boxes stand at their targets, so that moving only those"
        " scored 0.53",
    ),
)
