"""What strategies earn: chosen on one half of the items, measured on the other."""

from __future__ import annotations

import asyncio

import pytest

from rg_env.items.guessing.earnings import (
    NOTHING,
    Scored,
    constant_name,
    earn,
    summed_up,
)
from rg_env.pool.worker_pool import WorkerPool

LUCKY, STEADY = "lucky on one half", "steady"


def test_the_luck_of_a_half_is_not_what_a_strategy_earns() -> None:
    first = [Scored(None, {LUCKY: 1.0, STEADY: 0.5})] * 4
    second = [Scored(None, {STEADY: 0.5})] * 4
    found = summed_up((first, second), ({}, {}), [LUCKY, STEADY])
    assert found.best == (LUCKY, STEADY)
    # 0 on the second half, which `lucky` was not chosen on, and 0.5 on the first.
    assert found.mean == 0.25


def test_a_constant_is_not_paid_for_the_item_that_it_was_taken_from() -> None:
    name = constant_name("17")
    items = [Scored("17", {name: 1.0}), Scored("18", {}), Scored("19", {})]
    found = summed_up((items, items[1:]), ({name: "17"}, {}), [STEADY])
    assert found.means == {}


def test_a_constant_that_is_right_twice_is_paid_once() -> None:
    name = constant_name("17")
    items = [Scored("17", {name: 1.0}), Scored("17", {name: 1.0}), Scored("19", {})]
    found = summed_up((items, items), ({name: "17"}, {}), [STEADY])
    assert found.best[0] == name


@pytest.mark.parametrize(
    ("task", "least", "most"), [("syllogism", 0.4, 1.0), ("products", 0.0, 0.02)]
)
def test_guessing_pays_where_the_answers_are_two_words_and_not_where_they_are_many(
    pool: WorkerPool, task: str, least: float, most: float
) -> None:
    found = asyncio.run(earn(pool, task, lambda seed: {}, 16, "key"))
    assert found.num_items == 16
    assert least <= found.mean <= most


def test_a_level_of_which_nothing_can_be_made_earns_nothing(pool: WorkerPool) -> None:
    impossible = {"min_nodes": 3, "max_nodes": 3}
    found = asyncio.run(earn(pool, "knight_swap", lambda seed: impossible, 4, "key"))
    assert found == NOTHING
