"""The evaluation's items, ours and those of the presets: made, or left out."""

import asyncio
import dataclasses

import pytest

from rg_env.library import datasets
from rg_env.library.scales import load_shipped
from rg_env.stream.curriculum import Curriculum
from rg_env.stream.difficulty import Difficulty, LevelRule
from rg_env.stream.draws import Stream
from rg_env.stream.evaluation_items import (
    EvaluationItems,
    evaluation_attempts,
    items_digest,
    load_preset,
    plan_evaluation,
)
from rg_env.stream.item import Item, ItemMaker
from rg_env.stream.seeds import MAX_ATTEMPTS
from rg_env.stream.task_selection import StreamSettings, TaskChoice
from rg_env.workers.call import WorkerLostError

SCALES = load_shipped().scales
CHOICES = [TaskChoice(task) for task in ("acre", "gcd", "lcm", "maze")]


def stream(mode="default", low=0.0, high=1.0):
    rules = {choice.task: LevelRule(mode, low, high) for choice in CHOICES}
    difficulty = Difficulty(SCALES, rules, Curriculum(0.7))
    return Stream(CHOICES, StreamSettings(), difficulty)


# -- which -----------------------------------------------------------------------------


def test_the_seed_alone_chooses_which_are_evaluated_and_the_others_are_checked():
    def evaluated(number, seed):
        settings = StreamSettings(
            num_eval_samples_per_task=3, num_eval_tasks=number, eval_seed=seed
        )
        wanted, names = plan_evaluation(Stream(CHOICES, settings))
        assert list(wanted) == [choice.task for choice in CHOICES]
        assert all(len(wanted[t]) == (3 if t in names else 1) for t in wanted)
        return frozenset(names)

    assert evaluated(None, 1) == evaluated(99, 1) == {c.task for c in CHOICES}
    chosen = [evaluated(2, seed) for seed in range(20)]
    assert chosen == [evaluated(2, seed) for seed in range(20)]
    assert len(set(chosen)) > 1 and {len(names) for names in chosen} == {2}


@pytest.mark.parametrize("mode", ["random", "curriculum"])
def test_evaluation_keeps_the_defaults_where_levels_move(mode):
    items = evaluation_attempts(stream(mode), CHOICES, 5, 123)
    assert items == evaluation_attempts(stream(), CHOICES, 5, 123)


def test_no_two_attempts_at_evaluation_items_share_a_seed():
    items = evaluation_attempts(stream(), CHOICES, 50, 123)
    seeds = {attempt.seed for attempts in items for attempt in attempts}
    assert len(seeds) == len(CHOICES) * 50 * MAX_ATTEMPTS


@pytest.mark.parametrize(("level", "step"), [(None, -1), (0.0, 0)])
def test_a_level_of_the_evaluation_wins_over_one_that_is_fixed(level, step):
    fixed = stream("fixed", 1.0, 1.0)
    items = evaluation_attempts(fixed, CHOICES[:2], 1, 123, level=level)
    acre, gcd = (attempts[0] for attempts in items)
    assert gcd.params == SCALES["gcd"].steps[step].params
    assert gcd.level == (1.0 if level is None else level)
    assert (acre.level, acre.params) == (None, {})  # it has no scale


def test_a_published_item_is_refused_where_its_answer_is_wrong_and_only_there():
    tasks = ["syllogism", "string_insertion"]

    def refused(published):
        faulty = set()
        for (item,) in load_preset("rg-easy").items(tasks, Item):
            try:
                datasets.make_entry(item.task, item.params, item.seed, True, published)
            except datasets.UnusableEntryError:
                faulty.add(item.task)
        return faulty

    assert refused(published=False) == set(tasks)
    assert refused(published=True) == {"syllogism"}


MADE = Item("gcd", {"a": 1, "b": 0.5}, seed=7, digest="0")


@pytest.mark.parametrize(
    "change",
    [
        {"task": "lcm"},
        {"params": {"a": 1}},
        {"seed": 8},
        {"digest": "1"},
        {"size": 50},
    ],
)
def test_a_digest_changes_with_whatever_makes_an_item(change):
    other = dataclasses.replace(MADE, **change)
    assert items_digest([other], "1.0") != items_digest([MADE], "1.0")


def test_a_digest_is_of_an_order_and_a_release_and_of_no_prompt():
    other = dataclasses.replace(MADE, seed=8)
    asked = dataclasses.replace(MADE, params={"b": 0.5, "a": 1}, system_prompt="Hi.")
    both = items_digest([MADE, other], "1.0")
    assert both == items_digest([asked, other], "1.0")
    assert both not in (
        items_digest([other, MADE], "1.0"),
        items_digest([MADE, other], "1.1"),
    )


# -- made ------------------------------------------------------------------------------


async def test_an_item_knows_how_it_was_made_and_a_task_that_makes_none_is_left_out(
    pool, logged
):
    choices = [TaskChoice("gcd", params={"min_numbers": -1}), TaskChoice("lcm")]
    sampled = Stream(choices, StreamSettings(scoring_deadline_s=3.5))
    wanted, names = plan_evaluation(sampled)
    evaluation = EvaluationItems(pool, sampled, wanted, names)
    (item,) = await evaluation.check_all()
    assert dataclasses.replace(item, digest="") == wanted["lcm"][0][0]
    assert (item.split, item.index, item.deadline_s) == ("evaluation", 0, 3.5)
    ((missing, reason),) = evaluation.missing
    assert evaluation.left_out == {"gcd": reason} and missing.task == "gcd" and reason
    assert f"task gcd is left out: {reason}" in logged.text


async def test_all_who_wait_for_a_task_wait_for_one_check(pool):
    evaluation = EvaluationItems(pool, stream(), *plan_evaluation(stream()))
    waits = [asyncio.ensure_future(evaluation.ensure_checked("gcd")) for _ in range(2)]
    await asyncio.sleep(0)
    evaluation.stop()
    ends = await asyncio.gather(*waits, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError] * 2


async def test_lost_workers_leave_no_task_of_the_library_out(monkeypatch):
    async def lost(*args, **how):
        raise WorkerLostError("5 workers ended")

    monkeypatch.setattr(ItemMaker, "make_first_usable", lost)
    names = ["gcd", "a task of a user"]
    wanted = {name: [[Item(name)]] for name in names}
    evaluation = EvaluationItems(None, stream(), wanted, wanted)
    assert await evaluation.check_all() == []
    assert [item.task for item, _ in evaluation.missing] == names
    assert evaluation.left_out == {names[1]: "5 workers ended"}
