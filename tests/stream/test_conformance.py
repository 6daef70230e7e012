"""What holds for every task of the registry, through real worker processes."""

import jobs_for_conformance as jobs
import pytest

from rg_env.library.registry import TASKS
from rg_env.library.worker_jobs import make_entry, score_answers
from rg_env.reward.score import MAX_WRONG_VALUE, Score, read_scores
from rg_env.task_rules.table import solution

pytestmark = pytest.mark.processes

SEEDS = dict.fromkeys(TASKS, 3) | {"ab": 18}
"""With 3 the text "..." scores in propositional_logic; with 18 ab's gold is empty."""

HIGHEST_SEED = 2**32 - 1
DEADLINE_S = 60.0

NO_SOLUTION = {"boxnet", "rush_hour"}
"""Tasks whose entries only have the problem."""


def score(pool, task, entry, *answers):
    rows = pool.call(score_answers, task, {}, entry, answers, deadline_s=DEADLINE_S)
    return read_scores(answers, rows)


def assert_is_entry(entry):
    assert isinstance(entry["question"], str) and entry["question"].strip()
    assert isinstance(entry["answer"], str | None)
    assert isinstance(entry["metadata"], dict)


@pytest.mark.parametrize("task", TASKS)
def test_a_task_makes_the_same_entries_everywhere_and_scores_them_as_it_should(
    pool, other_pool, task
):
    seed, entry = pool.call(jobs.asked, task, {}, SEEDS[task], deadline_s=DEADLINE_S)
    assert_is_entry(entry)
    gold = solution(task, entry)
    assert (gold is None) == (task in NO_SOLUTION)
    answers = ["no solution" if gold is None else gold, f"{gold} or so"]
    afresh, rows = pool.call(
        jobs.build_afresh_and_score, task, seed, answers, deadline_s=DEADLINE_S
    )
    elsewhere = other_pool.call(make_entry, task, {}, seed, deadline_s=DEADLINE_S)
    assert entry == afresh == elsewhere
    # Scores survive the way between processes.
    scores = score(pool, task, entry, *answers)
    assert scores == read_scores(answers, rows)
    assert gold is None or scores[0] == Score(1.0, "right", gold)
    nothing = [text for text in ("", "...") if text != entry["answer"]]
    scores = score(pool, task, entry, *nothing)
    assert max(s.value for s in scores) <= MAX_WRONG_VALUE


# An item of that seed takes 11 s in sokoban and 5 s in futoshiki.
@pytest.mark.parametrize("task", sorted({*TASKS} - {"sokoban", "futoshiki"}))
def test_the_highest_seed_makes_an_entry(pool, task):
    entry = pool.call(
        jobs.make_asked_entry, task, {}, HIGHEST_SEED, deadline_s=DEADLINE_S
    )
    assert_is_entry(entry)
