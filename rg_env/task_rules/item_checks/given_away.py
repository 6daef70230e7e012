"""Entries that are solved by copying their question or by a fixed text.

Two kinds of row. An entry that holds nothing to find out is never asked: a kernel of
one, an output that is the input, premises that contradict each other. An answer that
is honest and only too common, as that a grid has no path, is asked one time in so many
as leave a text that always says so 0.25 above chance at most, in every task at its
defaults and at all steps of its scale. It stays among the answers, so that nobody
learns that it never is the right one. Which entries are kept depends on their
question alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from rg_env.task_rules.item_checks.contradictions import is_stated, share_left
from rg_env.task_rules.item_checks.item_check import Entry, ItemCheck
from rg_env.task_rules.item_checks.untouched_boards import (
    boxes_stand_at_targets,
    is_filled_by_one_sign,
)


def _is_kept(entry: Entry, one_in: int) -> bool:
    """Say whether an entry is among the one in so many that are asked."""
    text = entry["question"].encode(errors="surrogatepass")
    hashed = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(hashed, "big") % one_in == 0


def _seldom(
    task: str, fault: str, is_common: Callable[[Entry], bool], one_in: int
) -> ItemCheck:
    """Return the check that leaves one in so many of the common entries."""
    return ItemCheck(
        task, fault, lambda entry: is_common(entry) and not _is_kept(entry, one_in)
    )


def _seldom_answered(task: str, one_in: Mapping[str, int]) -> ItemCheck:
    """Return the check that leaves one in so many of the entries with an answer."""
    return ItemCheck(
        task,
        "answer is one that is right too often, and was asked often enough",
        lambda entry: not _is_kept(entry, one_in.get(entry["answer"], 1)),
    )


def _makes_two_letters_true(entry: Entry) -> bool:
    letters, premises = entry["metadata"]["variables"], entry["metadata"]["premises"]
    if len(letters) == 1:
        return False
    return share_left([*premises, f"¬({letters[0]} ∧ {letters[1]})"], letters) == 0


def _repeats_one_of_the_last_two(entry: Entry) -> bool:
    sequence = entry["metadata"]["sequence"]
    return sequence[-1] in sequence[-3:-1]


CHECKS: tuple[ItemCheck, ...] = (
    ItemCheck(
        "boxnet",
        "boxes stand at their targets, more than one in three of them",
        boxes_stand_at_targets,
    ),
    # 12 to 21 of 100 positions cannot be reached.
    _seldom_answered("knight_swap", {"No": 2}),
    # The shortest distance that is asked for, 42 of 100 at the defaults.
    _seldom_answered("maze", {"5": 2}),
    _seldom(
        "modulo_grid",
        "blanks all hold the sign that is the commoner in its grid",
        is_filled_by_one_sign,  # 90 of 100 at the defaults, whose grids have one blank
        one_in=6,
    ),
    _seldom(
        "number_sequence",
        "next number is one of the last two",
        _repeats_one_of_the_last_two,  # 48 of 100 at 1.0
        one_in=3,
    ),
    ItemCheck(
        "propositional_logic",
        "premises hold in no case or in every one, so that all follows or nothing",
        lambda entry: (
            share_left(entry["metadata"]["premises"], entry["metadata"]["variables"])
            in (0, 1)
        ),
    ),
    ItemCheck(
        "propositional_logic",
        "example of a conclusion says the same as one of the premises",
        lambda entry: is_stated(
            entry["metadata"]["example_answer"],
            entry["metadata"]["premises"],
            entry["metadata"]["variables"],
        ),
    ),
    _seldom(
        "propositional_logic",
        "premises make the first two letters true",
        _makes_two_letters_true,
        one_in=2,  # `P ∧ Q` earned 0.34 at the defaults
    ),
    # 35 to 53 of 100 have 2 at every level.
    _seldom_answered("self_reference", {"2": 2}),
    # 38 of 100 at the defaults.
    _seldom_answered("shortest_path", {"infeasible": 3}),
)
"""In the order of the tasks' names."""
