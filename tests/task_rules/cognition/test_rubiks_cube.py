"""The way back from a scrambled cube."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rg_env.items import worker_jobs
from rg_env.task_rules.cognition.rubiks_cube import unscramble
from rg_env.tasks.scales import load_shipped
from rg_env.workers.worker_pool import WorkerPool

MakeEntry = Callable[..., dict[str, Any]]

GUARD_S = 120.0


@pytest.mark.parametrize("number", range(4))
def test_a_scrambled_cube_of_every_size_is_solved_by_its_way_back(
    pool: WorkerPool, make_entry: MakeEntry, number: int
) -> None:
    step = load_shipped().scales["rubiks_cube"].steps[number]
    for seed in range(5):
        entry = make_entry("rubiks_cube", step.params, seed)
        answer = unscramble(entry["metadata"]["scramble_moves"])
        assert answer
        call = (
            worker_jobs.score_answers,
            "rubiks_cube",
            dict(step.params),
            entry,
            [answer],
        )
        assert pool.call(*call, deadline_s=GUARD_S)[0][0] == 1.0


def test_a_way_back_needs_no_move_that_begins_with_a_number() -> None:
    assert unscramble("R 2U' Lw 1Fw'") == "F Lw' Uw U' R'"
    assert unscramble("R 3U") is None
    assert unscramble("R X") is None
