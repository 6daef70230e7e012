"""Entries whose answer is not the right one, not the only one or cannot be known.

docs/gold_answers.md says how many of each task they are, and what was measured with.
"""

from __future__ import annotations

from rg_env.task_rules.faster.knights import make_solve_swap
from rg_env.task_rules.item_checks.button_presses import is_reached_sooner
from rg_env.task_rules.item_checks.card_rounds import result_of_last_round
from rg_env.task_rules.item_checks.categorical_syllogisms import follows
from rg_env.task_rules.item_checks.cube_turns import possible_colors
from rg_env.task_rules.item_checks.item_check import Entry, ItemCheck
from rg_env.task_rules.item_checks.kinship import is_parent_in_law
from rg_env.task_rules.item_checks.rectangle_drawings import may_show_another_count
from rg_env.task_rules.item_checks.stone_captures import stones_captured_at
from rg_env.task_rules.item_checks.told_colleagues import (
    has_no_such_brother,
    women_around_matilda,
)

_KNIGHT_MOVE = {1, 2}
"""Columns and rows between two squares, in either order."""


def _can_be_swapped(entry: Entry) -> bool:
    """Say whether knights swap where `No` is the answer.

    The library removes a move between two squares from the board that it searches, and
    not from the one that it draws.
    """
    metadata = entry["metadata"]
    if metadata["is_possible"]:
        return False
    board = {
        a: [
            b
            for b in metadata["board"]
            if {abs(ord(a[0]) - ord(b[0])), abs(int(a[1:]) - int(b[1:]))}
            == _KNIGHT_MOVE
        ]
        for a in metadata["board"]
    }
    solve = make_solve_swap(None)
    return solve(board, metadata["pieces"], metadata["start_turn"]) is not None


def _is_said_of_two(entry: Entry) -> bool:
    said = entry["metadata"]["question"].removeprefix("Who ").partition("?")[0]
    return bool(entry["question"].count(f" {said}. ") > 1)


def _is_told_as_child(entry: Entry) -> bool:
    """Say whether who is called a parent-in-law is none."""
    metadata = entry["metadata"]
    one, other = metadata["person1"], metadata["person2"]
    return entry["answer"].endswith("-in-law") and not is_parent_in_law(
        entry["question"], one, other
    )


def _has_other_women(entry: Entry) -> bool:
    women = women_around_matilda(entry["question"])
    return women is not None and women != int(entry["answer"])


def _is_another_round(entry: Entry) -> bool:
    result = result_of_last_round(entry["metadata"]["rounds"])
    return bool(result != entry["answer"])


def _captures_nothing(entry: Entry) -> bool:
    board = entry["metadata"]["board"]
    return entry["answer"] not in stones_captured_at(board)


def _is_not_the_only_capture(entry: Entry) -> bool:
    captured = stones_captured_at(entry["metadata"]["board"])
    own = captured.pop(entry["answer"])
    if "as many white stones as possible" in entry["question"]:
        return max(captured.values(), default=0) >= own
    return bool(captured)


def _is_not_the_shortest(entry: Entry) -> bool:
    metadata = entry["metadata"]
    start = (metadata["initial_value"], metadata["initial_state"])
    presses = len(metadata["solution_path"])
    target = metadata["target_value"]
    return is_reached_sooner(start, target, metadata["buttons"], presses)


def _readings(entry: Entry) -> list[str]:
    """Return the answer where terms may be empty, and where they may not."""
    metadata = entry["metadata"]
    premises = [metadata["premise1"], metadata["premise2"]]
    return [
        "Yes" if follows(premises, metadata["conclusion"], are_there) else "No"
        for are_there in (False, True)
    ]


def _is_no_conclusion(entry: Entry) -> bool:
    return entry["answer"] not in _readings(entry)


def _depends_on_reading(entry: Entry) -> bool:
    return len(set(_readings(entry))) > 1


def _turns_either_way(entry: Entry) -> bool:
    metadata = entry["metadata"]
    colors = possible_colors(
        metadata["initial_state"], metadata["rotations"], metadata["target_side"]
    )
    return len(colors) > 1


CHECKS: tuple[ItemCheck, ...] = (
    ItemCheck(
        "aiw",
        "answer leaves out women whom the question names",
        _has_other_women,
    ),
    ItemCheck(
        "aiw",
        "question asks for the brother of an only brother",
        lambda entry: has_no_such_brother(entry["question"]),
    ),
    ItemCheck(
        "codeio",
        "answer holds the address of an object, which is another in each process",
        lambda entry: " at 0x" in entry["question"] + entry["answer"],
        always=True,
    ),
    ItemCheck(
        "color_cube_rotation",
        "answer depends on the way of a half turn, which the question does not say",
        _turns_either_way,
    ),
    ItemCheck(
        "family_relationships",
        "answer calls a child-in-law a parent-in-law",
        _is_told_as_child,
    ),
    ItemCheck(
        "knight_swap",
        "answer is that the knights cannot be swapped, and they can",
        _can_be_swapped,
    ),
    ItemCheck(
        "mahjong_puzzle",
        "answer is not the result of its last round",
        _is_another_round,
    ),
    ItemCheck(
        "needle_haystack",
        "question says the same of two people",
        _is_said_of_two,
    ),
    ItemCheck(
        "quantum_lock",
        "answer is not the shortest if, as it says, every press toggles the light",
        _is_not_the_shortest,
    ),
    ItemCheck(
        "rectangle_count",
        "grid shows another number of rectangles as well, or may show one",
        lambda entry: may_show_another_count(entry["metadata"]["puzzle"]),
    ),
    ItemCheck("syllogism", "answer is wrong by any reading", _is_no_conclusion),
    ItemCheck(
        "syllogism",
        "answer depends on whether there are such things, which it does not say",
        _depends_on_reading,
    ),
    ItemCheck("tsumego", "answer captures nothing", _captures_nothing),
    ItemCheck(
        "tsumego",
        "answer is not the only move that captures",
        _is_not_the_only_capture,
    ),
)
"""In the order of the tasks' names; a later one of a task may rely on an earlier."""
