"""The evaluation's items: chosen by `eval_seed`, made, or left out with a reason."""

from __future__ import annotations

import asyncio
import functools
from types import SimpleNamespace

import jobs_for_items
import pytest

from rg_env.items import evaluation_items, worker_jobs
from rg_env.items.evaluation_items import evaluated_choices, make_eval_items
from rg_env.items.group_scorer import TaskHandle
from rg_env.tasks.item_stream import ItemSpec
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
    return [
        [ItemSpec(task, params, 2**31 + n, None, n)] for n, task in enumerate(tasks)
    ]


@pytest.mark.parametrize("num_tasks", [None, 4, 99])
def test_all_choices_are_evaluated_unless_fewer_are_wanted(num_tasks):
    assert evaluated_choices(CHOICES, num_tasks, 1) == CHOICES


def test_the_seed_alone_chooses_which_are_evaluated_and_their_order_stays():
    chosen = [evaluated_choices(CHOICES, 2, seed) for seed in range(20)]
    assert chosen == [evaluated_choices(CHOICES, 2, seed) for seed in range(20)]
    assert all(found == sorted(found, key=CHOICES.index) for found in chosen)
    assert len({tuple(c.task for c in found) for found in chosen}) > 1


def test_an_item_knows_how_it_was_made_and_how_it_is_scored(pool):
    handle_of = functools.partial(TaskHandle, deadline_s=3.5)
    making = make_eval_items(pool, specs("gcd", "lcm"), Settings(), handle_of)
    items, reason = asyncio.run(making)
    assert not reason
    assert [item.handle.task for item in items] == ["gcd", "lcm"]
    handle = items[1].handle
    assert (handle.split, handle.index, handle.seed) == ("evaluation", 1, 2**31 + 1)
    assert handle.deadline_s == 3.5


def test_an_item_that_cannot_be_made_is_missing_with_its_reason(pool):
    wanted = [*specs("gcd", min_numbers=-1), *specs("lcm")]
    items, reason = asyncio.run(make_eval_items(pool, wanted, Settings()))
    assert [item.handle.task for item in items] == ["lcm"]
    assert reason


def test_an_item_that_is_not_used_is_replaced_by_the_next_attempt_at_it(
    pool, monkeypatch
):
    monkeypatch.setattr(worker_jobs, "make_entry", jobs_for_items.make_entry)
    params = {"unusable_below": 2**31 + 9}
    wanted = [ItemSpec("gcd", params, 2**31 + n, None, 4) for n in range(12)]
    (item,), _ = asyncio.run(make_eval_items(pool, [wanted], Settings()))
    assert (item.handle.index, item.handle.seed) == (4, 2**31 + 9)


async def test_lost_workers_leave_no_task_of_the_library_out(monkeypatch):
    async def lost(*args, **how):
        raise WorkerLostError("5 workers ended")

    monkeypatch.setattr(evaluation_items, "first_usable", lost)
    left_out = {}
    maker = SimpleNamespace(leave_out=left_out.__setitem__, left_out=left_out)
    items = SimpleNamespace(maker=maker, handle=TaskHandle, keep_for_evaluation=set)
    names = ["gcd", "a task of a user"]
    wanted = {name: specs(name) for name in names}
    evaluation = evaluation_items.EvaluationItems(
        None, Settings(), wanted, names, items
    )
    assert await evaluation.finished() == []
    assert [spec.task for spec, _ in evaluation.missing] == names
    assert left_out == {names[1]: "5 workers ended"}


def test_a_pool_that_is_closed_leaves_no_task_out():
    gone = WorkerPool(1)
    gone.close()
    with pytest.raises(PoolClosedError):
        asyncio.run(make_eval_items(gone, specs("gcd"), Settings()))
