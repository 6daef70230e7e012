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

from rg_env.task_rules.item_checks.item_check import Entry, ItemCheck
from rg_env.task_rules.item_checks.untouched_boards import (
    ends_as_it_began,
    has_few_edges,
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


def _has_a_root_of_zero(entry: Entry) -> bool:
    return 0.0 in entry["metadata"]["real_solutions"]


def _is_one_of_the_factors(entry: Entry) -> bool:
    return entry["answer"] in entry["metadata"]["expression"].split(" * ")


CHECKS: tuple[ItemCheck, ...] = (
    ItemCheck(
        "game_of_life",
        "last board is empty or the same as the first",
        ends_as_it_began,
    ),
    ItemCheck(
        "graph_color",
        "edges are so few that the colors in turn are right for one in five such"
        " graphs",
        has_few_edges,
    ),
    # 27 to 50 of 100.
    _seldom_answered("letter_counting", {"1": 2}),
    _seldom(
        "palindrome_partitioning",
        "only partition is into letters",
        lambda entry: len(entry["metadata"]["solution"]) == 1,  # 30 of 100 at 0.0
        one_in=2,
    ),
    _seldom(
        "polynomial_equations",
        "equation has the root 0",
        _has_a_root_of_zero,
        one_in=8,  # `0` earned 0.30 to 0.69
    ),
    ItemCheck(
        "pool_matrix",
        "kernel is one cell, so that the output is the input",
        lambda entry: bool(entry["metadata"]["pool_size"] == 1),
    ),
    _seldom(
        "products",
        "answer is one of its factors",
        _is_one_of_the_factors,
        one_in=4,  # one factor is 0 or 1 in 36 of 100 at 0.0
    ),
    ItemCheck(
        "rearc",
        "output is the input",
        lambda entry: bool(entry["metadata"]["output"] == entry["metadata"]["input"]),
    ),
    _seldom(
        "rotate_matrix",
        "rotation is by whole turns",
        lambda entry: entry["answer"] in entry["question"],  # 36 of 100 at 1.0
        one_in=4,
    ),
    # 38 of 100 at the defaults, 70 at 1.0.
    _seldom_answered("rotten_oranges", {"-1": 5}),
    _seldom(
        "string_insertion",
        "string has no place for an insertion",
        lambda entry: bool(entry["answer"] == entry["metadata"]["string"]),
        one_in=50,  # 92 of 100 at the defaults
    ),
    _seldom(
        "string_manipulation",
        "string is one that no rule changes",
        lambda entry: bool(entry["answer"] == entry["metadata"]["string"]),
        one_in=4,  # 34 to 48 of 100 at the defaults
    ),
)
"""In the order of the tasks' names."""
