"""The evaluation's items: chosen by `eval_seed`, made, or left out with a reason."""

from __future__ import annotations

from types import SimpleNamespace

import jobs_for_items
import pytest

from rg_env.items import evaluation_items, worker_jobs
from rg_env.items.evaluation_items import EvaluationItems, evaluated_choices
from rg_env.items.item import Item
from rg_env.tasks.selection import TaskChoice
from rg_env.workers.pool_errors import PoolClosedError, WorkerLostError
from rg_env.workers.worker_pool import WorkerPool

CHOICES = [TaskChoice(task) for task in ("acre", "gcd", "lcm", "maze")]


class Settings:
    """Those that making evaluation items reads."""

    item_deadline_s = 60.0
    scorer_fixes = True
    worker_count = 1


def specs(*tasks, **params):
    """Return one attempt at an item of each task."""
    return [[Item(task, params, 2**31 + n, None, n)] for n, task in enumerate(tasks)]


def test_the_seed_alone_chooses_which_are_evaluated_and_their_order_stays():
    assert evaluated_choices(CHOICES, None, 1) == evaluated_choices(CHOICES, 99, 1)
    chosen = [evaluated_choices(CHOICES, 2, seed) for seed in range(20)]
    assert chosen == [evaluated_choices(CHOICES, 2, seed) for seed in range(20)]
    assert all(found == sorted(found, key=CHOICES.index) for found in chosen)
    assert len({tuple(c.task for c in found) for found in chosen}) > 1


def evaluation_of(pool, wanted, **fields):
    """Return the evaluation items of some attempts, and the tasks that are left out."""
    left_out = {}
    items = SimpleNamespace(
        leave_out=left_out.__setitem__,
        left_out=left_out,
        stream=SimpleNamespace(fields=fields),
        keep_for_evaluation=set,
    )
    by_task = {attempts[0].task: [attempts] for attempts in wanted}
    return EvaluationItems(pool, Settings(), by_task, by_task, items), left_out


async def test_an_item_knows_how_it_was_made_and_how_it_is_scored(pool):
    evaluation, left_out = evaluation_of(pool, specs("gcd", "lcm"), deadline_s=3.5)
    _, item = await evaluation.finished()
    assert not left_out and not evaluation.missing
    found = (item.task, item.split, item.index, item.seed, item.deadline_s)
    assert found == ("lcm", "evaluation", 1, 2**31 + 1, 3.5)


async def test_a_task_whose_item_cannot_be_made_is_missing_and_left_out(pool):
    wanted = [*specs("gcd", min_numbers=-1), *specs("lcm")]
    evaluation, left_out = evaluation_of(pool, wanted)
    assert [item.task for item in await evaluation.finished()] == ["lcm"]
    ((item, reason),) = evaluation.missing
    assert left_out == {item.task: reason} and reason


async def test_an_item_that_is_not_used_is_replaced_by_the_next_attempt_at_it(
    pool, monkeypatch
):
    for job in ("make_entry", "score_answers", "prepare_scores"):
        monkeypatch.setattr(worker_jobs, job, getattr(jobs_for_items, job))
    params = {"unusable_below": 2**31 + 9}
    attempts = [Item("gcd", params, 2**31 + n, None, 4) for n in range(12)]
    evaluation, _ = evaluation_of(pool, [attempts])
    (item,) = await evaluation.finished()
    assert (item.index, item.seed) == (4, 2**31 + 9)


async def test_lost_workers_leave_no_task_of_the_library_out(monkeypatch):
    async def lost(*args, **how):
        raise WorkerLostError("5 workers ended")

    monkeypatch.setattr(evaluation_items, "first_usable", lost)
    names = ["gcd", "a task of a user"]
    evaluation, left_out = evaluation_of(None, specs(*names))
    assert await evaluation.finished() == []
    assert [item.task for item, _ in evaluation.missing] == names
    assert left_out == {names[1]: "5 workers ended"}


async def test_a_pool_that_is_closed_leaves_no_task_out():
    gone = WorkerPool(1)
    gone.close()
    evaluation, left_out = evaluation_of(gone, specs("gcd"))
    with pytest.raises(PoolClosedError):
        await evaluation.finished()
    assert not left_out
