"""What items cost: which steps are measured, and what comes of one that makes none."""

from __future__ import annotations

import asyncio

from rg_env.items import task_check
from rg_env.tasks.scales import Scale, Step


def measured(pool, scales):
    steps = task_check.steps_to_measure(scales)
    return asyncio.run(task_check.measured(pool, 1, scales, steps))


def gcd_scale(*all_params):
    return Scale("gcd", tuple(Step((), params, 0.0) for params in all_params))


def test_every_step_of_one_task_is_measured(pool):
    scale = gcd_scale({}, {"max_numbers": 3}, {"max_numbers": 4})
    found = measured(pool, {"gcd": scale})["gcd"]
    assert sorted(found) == [0, 1, 2]
    assert all(0.0 < cost < 1e4 for cost in found.values())


def test_of_several_tasks_both_ends_are_measured(pool):
    scale = gcd_scale({}, {"max_numbers": 3}, {"max_numbers": 4})
    found = measured(pool, {"gcd": scale, "acre": None})
    assert {task: sorted(costs) for task, costs in found.items()} == {
        "gcd": [0, 2],
        "acre": [0],
    }


def test_a_step_that_makes_no_item_is_a_finding_and_no_end(pool):
    found = measured(pool, {"gcd": gcd_scale({"min_numbers": -1}, {})})["gcd"]
    assert found[0].startswith("step 1: ")
    assert isinstance(found[1], float)


def test_entries_that_nobody_can_answer_are_no_failure(pool):
    hanoi = Scale("tower_of_hanoi", (Step((), {"max_disks": 15}, 0.0),))
    found = measured(pool, {"tower_of_hanoi": hanoi, "acre": None})
    assert isinstance(found["tower_of_hanoi"][0], float)


def test_a_scale_of_nothing_else_says_so(pool):
    large = {"min_disks": 15, "max_disks": 15, "min_pegs": 3, "max_pegs": 3}
    hanoi = Scale("tower_of_hanoi", (Step((), large, 0.0),))
    found = measured(pool, {"tower_of_hanoi": hanoi})["tower_of_hanoi"]
    assert "has more than 20000 characters" in found[0]
