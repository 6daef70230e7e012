"""What strategies score on items that were made."""

from __future__ import annotations

import asyncio

import pytest

from rg_env.stream.item import Item
from rg_env.workers.worker_pool import WorkerPool
from tools.trivial_baselines.expected_scores import expected_scores, guesses, make_items


def item(gold: str, question: str = "?") -> Item:
    entry = {"question": question, "answer": gold}
    return Item("some_task", {}, 1, _entry=entry)


def test_an_item_s_own_right_answer_is_not_among_those_that_are_picked_from() -> None:
    known = [item("Ann", "Ann or Bob?"), item("Bob", "Cid or Bob?"), item("Cid")]
    said = [guesses(known)(one) for one in known[:2]]
    assert [one["first answer word named"] for one in said] == ["Bob", "Cid"]


def test_the_commonest_right_answers_to_known_items_are_given_to_others() -> None:
    golds = [*map(str, range(100, 130)), "104", "117"]
    said = guesses([item(gold) for gold in golds])(item("130"))
    assert "always '117'" in said and "always '104'" in said
    assert "always '129'" not in said


@pytest.mark.parametrize(
    ("task", "least", "most"), [("syllogism", 0.4, 1.0), ("products", 0.0, 0.2)]
)
def test_guessing_scores_where_the_answers_are_two_words_and_not_where_they_are_many(
    pool: WorkerPool, task: str, least: float, most: float
) -> None:
    items = asyncio.run(make_items(pool, task, {}, 16, "key"))
    found = list(asyncio.run(expected_scores(pool, items, guesses(items))).values())
    assert {one.items for one in found} == {16}
    assert [one.mean for one in found] == sorted(one.mean for one in found)[::-1]
    assert least <= found[0].mean <= most
