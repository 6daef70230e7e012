"""boxnet: plans that carry each box to the target of its colour.

The library skips impossible actions, and raises if a box would leave the grid. So one
plan that carries everything along a path through the whole grid and back solves every
item of that size. This scorer plays the plan by the same rules, and every action must
be possible in its turn.
"""

from __future__ import annotations

import itertools
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

_COORDINATE = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_NAMED_PLACE = re.compile(
    rf"(Agent|square)\[({_COORDINATE.pattern}),\s*({_COORDINATE.pattern})\]"
)
_MOVE = re.compile(r"move\(([^,()]*),\s([^()]*)\)\s*")


def _place(name: str) -> Position:
    """Return the place of a square of the metadata: `0.5_1.5`."""
    row, column = _COORDINATE.findall(name)
    return float(row), float(column)


def _place_of(kind: str, text: str) -> Position | None:
    """Return the place in a plan's `Agent[0.5, 1.5]`, None for anything else."""
    match = _NAMED_PLACE.fullmatch(text.strip())
    is_named = match is not None and match[1] == kind
    return (float(match[2]), float(match[3])) if match and is_named else None


def _move_box(squares: Squares, place: Position, box: str, to: Position) -> bool:
    """Carry a box to an adjacent square; return whether that was possible."""
    distances = sorted((abs(place[0] - to[0]), abs(place[1] - to[1])))
    if distances != [0.0, 1.0] or to not in squares:
        return False
    squares[place].remove(box)
    squares[to].append(box)
    return True


def _target(box: str) -> str:
    return f"target_{box[4:]}"


def _act(squares: Squares, agent: str, action: Any) -> bool:
    """Play one action of one agent; return whether it was possible."""
    place = _place_of("Agent", agent)
    move = isinstance(action, str) and _MOVE.fullmatch(action)
    if place is None or not move:
        return False
    here = squares.get(place, [])
    box, goal = move.groups()
    if box not in here or not box.startswith("box_"):
        return False
    if "square" in goal:
        to = _place_of("square", goal)
        return to is not None and _move_box(squares, place, box, to)
    if goal != _target(box) or goal not in here:
        return False
    here.remove(box)
    here.remove(goal)
    return True


def _is_played(squares: Squares, step: Any) -> bool:
    """Play the actions of a step in turn; return whether all were possible."""
    if not isinstance(step, tuple):
        return False
    agents = [_place_of("Agent", agent) for agent, _ in step]
    one_each = len({*agents}) == len(agents)
    return one_each and all(_act(squares, *action) for action in step)


def _boxes(*squares: list[str]) -> list[str]:
    things = itertools.chain(*squares)
    return [thing for thing in things if thing.startswith("box_")]


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
    squares = {_place(name): list(things) for name, things in initial.items()}
    is_possible = all(_is_played(squares, step) for step in plan)
    return float(is_possible and not _boxes(*squares.values()))


# A text up to this length is cheap to match.
_SAFE_CHARS = 2_000

MAX_STRING_CHARS = 200


def _too_costly(answer: str, gold: str | None) -> str | None:
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
MAX_IN_PLACE = 1 / 3


def _stand_at_targets(entry: Entry) -> bool:
    squares = entry["metadata"]["initial_state"].values()
    in_place = sum(
        min(things.count(box), things.count(_target(box)))
        for things in squares
        for box in set(_boxes(things))
    )
    return bool(in_place > MAX_IN_PLACE * len(_boxes(*squares)))


BOXNET = TaskRules(
    "boxnet",
    # The scorer takes quadratic time for a long string.
    guard=Guard(_too_costly),
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
            _stand_at_targets,
            answer_stands=True,
        ),
    ),
    level_repair=LevelRepair(
        {level: {"min_row_num": 2, "min_column_num": 2} for level in range(9)},
        "every level asks for grids from one row on, and on a grid of one or two"
        " squares most boxes stand at their targets, so that moving those alone"
        " scored 0.53",
    ),
)
