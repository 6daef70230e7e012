"""What holds for every task of the registry, through real worker processes."""

import jobs_for_conformance as jobs
import pytest

from rg_env.library.registry import TASKS
from rg_env.library.worker_jobs import make_entry, score_answers
from rg_env.reward.score import WRONG_AT_MOST, Score, read_rows
from rg_env.task_rules.table import solution

pytestmark = pytest.mark.processes

SEEDS = (3, 18)
"""With 3 the text "..." scores in propositional_logic; with 18 ab's gold is empty."""

HIGHEST_SEED = 2**32 - 1
DEADLINE_S = 60.0

NO_SOLUTION = {"boxnet", "rush_hour"}
"""Tasks whose entries hold the problem alone."""


def score(pool, task, entry, *answers):
    call = (score_answers, task, {}, entry, answers)
    return read_rows(answers, pool.call(*call, deadline_s=DEADLINE_S))


def assert_is_entry(entry):
    assert isinstance(entry["question"], str) and entry["question"].strip()
    assert isinstance(entry["answer"], str | None)
    assert isinstance(entry["metadata"], dict)


@pytest.mark.parametrize("task", TASKS)
def test_a_task_makes_the_same_entries_everywhere_and_scores_them_as_it_should(
    pool, other_pool, task
):
    for asked in SEEDS:
        call = (jobs.asked_seed, task, {}, asked)
        seed = pool.call(*call, deadline_s=DEADLINE_S)
        make = (make_entry, task, {}, seed)
        entry, again = (
            p.call(*make, deadline_s=DEADLINE_S) for p in (pool, other_pool)
        )
        call = (jobs.build_entry_afresh, task, seed)
        assert entry == again == pool.call(*call, deadline_s=DEADLINE_S)
        assert_is_entry(entry)
        gold = solution(task, entry)
        assert (gold is None) == (task in NO_SOLUTION)
        if gold is not None:
            assert score(pool, task, entry, gold) == [Score(1.0, "right", gold)]
        nothing = [text for text in ("", "...") if text != entry["answer"]]
        scores = score(pool, task, entry, *nothing)
        assert max(each.value for each in scores) <= WRONG_AT_MOST
        # Scores survive the way between processes.
        answers = [gold or "no solution", f"{gold} or so"]
        call = (jobs.score_where_made, task, seed, answers)
        rows = pool.call(*call, deadline_s=DEADLINE_S)
        assert score(pool, task, entry, *answers) == read_rows(answers, rows)


# An item of that seed takes 11 s in sokoban and 5 s in futoshiki.
@pytest.mark.parametrize("task", sorted({*TASKS} - {"sokoban", "futoshiki"}))
def test_the_highest_seed_makes_an_entry(pool, task):
    call = (jobs.make_asked_entry, task, {}, HIGHEST_SEED)
    assert_is_entry(pool.call(*call, deadline_s=DEADLINE_S))
