"""The way back from a scrambled cube, and turns that are passed over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rg_env.items import worker_jobs
from rg_env.task_rules.cognition.rubiks_cube import unscramble
from rg_env.tasks import library
from rg_env.tasks.scales import load_shipped
from tests.support.fixed_scores import fixed_score

MakeEntry = Callable[..., dict[str, Any]]

GUARD_S = 120.0


@pytest.mark.parametrize("number", range(4))
def test_a_scrambled_cube_of_every_size_is_solved_by_its_way_back(
    pool, make_entry, number
):
    step = load_shipped().scales["rubiks_cube"].steps[number]
    for seed in range(5):
        entry = make_entry("rubiks_cube", step.params, seed)
        answer = unscramble(entry["metadata"]["scramble_moves"])
        assert answer
        job = (worker_jobs.score_answers, "rubiks_cube", dict(step.params), entry)
        rows = pool.call(*job, [answer], deadline_s=GUARD_S)
        assert rows[0][0] == 1.0


def test_a_way_back_needs_no_move_that_begins_with_a_number():
    assert unscramble("R 2U' Lw 1Fw'") == "F Lw' Uw U' R'"
    assert unscramble("R 3U") is None
    assert unscramble("R X") is None


@pytest.mark.parametrize("more", ["2R", "2R'", "U2'", "42", "hello", "0R", "9R"])
def test_nothing_beside_a_solution_is_passed_over(more: str) -> None:
    entry = library.make_entry("rubiks_cube", {}, 5)
    gold = entry["metadata"]["example_correct_answer"]
    assert fixed_score("rubiks_cube", entry, gold) == 1.0
    assert fixed_score("rubiks_cube", entry, f"{gold} {more}") == 0.0
