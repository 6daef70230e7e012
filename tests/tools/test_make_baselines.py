"""What strategies score, where that is measured, and what becomes a baseline."""

import asyncio
import json

import pytest

from rg_env.library.scales import Scale, Step
from rg_env.library.trivial_baselines import BASELINES
from rg_env.stream.item import Item
from tools.make_baselines import (
    MEASURED_ON,
    MIN_SHARE,
    cells_of,
    check_score,
    guesses,
    measure,
)

SHIPPED = json.loads(BASELINES.read_text(encoding="utf-8"))["tasks"]

EASY, DEFAULTS, HARD = ({"size": 1}, {}, {"size": 9})
STEPS = tuple(Step((n,), p, 1.0) for n, p in enumerate((EASY, DEFAULTS, HARD)))


def item(gold, question="?"):
    entry = {"question": question, "answer": gold}
    return Item("some_task", {}, 1, _entry=entry)


def test_an_item_s_own_right_answer_is_not_among_those_that_are_picked_from():
    known = [item("Ann", "Ann or Bob?"), item("Bob", "Cid or Bob?"), item("Cid")]
    said = [guesses(known)(one) for one in known[:2]]
    assert [one["first answer word named"] for one in said] == ["Bob", "Cid"]


def test_the_commonest_right_answers_to_known_items_are_given_to_others():
    golds = [*map(str, range(100, 130)), "104", "117"]
    said = guesses([item(gold) for gold in golds])(item("130"))
    assert "always '117'" in said and "always '104'" in said
    assert "always '129'" not in said


def test_the_defaults_and_every_step_are_measured_once():
    found = cells_of("some_task", Scale("some_task", STEPS))
    assert [params for _, params, _ in found] == [EASY, DEFAULTS, HARD]
    found = cells_of("some_task", Scale("some_task", STEPS[::2]))
    assert [params for _, params, _ in found] == [DEFAULTS, EASY, HARD]


@pytest.mark.parametrize("scale", [None, Scale("some_task", STEPS[:1])])
def test_a_task_whose_items_no_level_changes_is_measured_at_its_defaults(
    scale,
):
    assert cells_of("some_task", scale) == [("some_task", {}, 0.0)]


def test_what_is_best_on_some_items_is_measured_on_others(pool):
    best = asyncio.run(measure(pool, ("syllogism", {}, 250.0)))
    assert best is not None and best["items"] == MEASURED_ON * MIN_SHARE
    assert 0.4 < best["value"] < 0.95


def test_what_scores_little_is_no_baseline(pool):
    assert asyncio.run(measure(pool, ("products", {}, 250.0))) is None


def test_the_shipped_baselines_are_of_the_scorers_of_today(pool):
    async def check_scores():
        found = await asyncio.gather(*(check_score(pool, task) for task in SHIPPED))
        return dict(zip(SHIPPED, found, strict=True))

    found = asyncio.run(check_scores())
    stale = {task for task, row in SHIPPED.items() if row["check_score"] != found[task]}
    named = " ".join(sorted(stale))
    assert not stale, (
        f"The rewards of wrong answers changed: {named}. Why? A rule that reads or pays"
        " more than it should shows here as well: see what changed with"
        f" `pytest tests/task_rules/test_near_misses.py` and `show TASK --answer TEXT`."
        f" Where the change is meant, `python -m tools.make_baselines {named}` measures"
        " the baselines again."
    )
