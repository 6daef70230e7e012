"""What holds for every task of the registry, through real worker processes.

Every exception stands in a table here. A table is exact: a row that is not needed any
more fails as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jobs_for_conformance
import pytest

from rg_env.items import worker_jobs
from rg_env.scoring.score import WRONG_AT_MOST, Score, read_rows
from rg_env.tasks.library import TASKS

pytestmark = pytest.mark.processes

Entry = dict[str, Any]

SEEDS = (3, 18)
"""With 3 the text "..." scores in propositional_logic; with 18 ab's gold is empty."""

HIGHEST_SEED = 2**32 - 1
DEADLINE_S = 60.0

SOLUTION_IN_METADATA: dict[str, Callable[[Entry], str]] = {
    "graph_color": lambda metadata: json.dumps(metadata["possible_answer"]),
    "propositional_logic": lambda metadata: metadata["example_answer"],
    "rubiks_cube": lambda metadata: metadata["example_correct_answer"],
}
"""Tasks whose gold answer is None, and where the entry holds a right one."""

NO_SOLUTION = {
    "boxnet": "gold is None and the metadata hold the problem alone",
    "rush_hour": "gold is None and the metadata hold the problem alone",
}


@pytest.fixture(scope="module", params=TASKS)
def task(request):
    return str(request.param)


@pytest.fixture(scope="module")
def seeds(pool, task):
    """Return seeds whose entries are sampled, as many as there are `SEEDS`."""
    call = (jobs_for_conformance.asked_seed, task, {})
    return [pool.call(*call, seed, deadline_s=DEADLINE_S) for seed in SEEDS]


def for_every_seed(pool, job, task, seeds):
    """Run a job on all seeds at once, shape (len(SEEDS),)."""
    leading = (task, {}) if job is worker_jobs.make_entry else (task,)
    calls = [pool.submit(job, *leading, s, deadline_s=DEADLINE_S) for s in seeds]
    return [call.result() for call in calls]


@pytest.fixture(scope="module")
def entries(pool, task, seeds):
    return for_every_seed(pool, worker_jobs.make_entry, task, seeds)


def score(pool, task, entry, *answers):
    call = (worker_jobs.score_answers, task, {}, entry, answers)
    return read_rows(answers, pool.call(*call, deadline_s=DEADLINE_S))


def right_answer(task, entry):
    """Return an answer known to be right, None where the library knows none."""
    if task in SOLUTION_IN_METADATA:
        return SOLUTION_IN_METADATA[task](entry["metadata"])
    answer: str | None = entry["answer"]
    return answer


def assert_is_entry(entry):
    assert isinstance(entry["question"], str) and entry["question"].strip()
    assert isinstance(entry["answer"], str | None)
    assert isinstance(entry["metadata"], dict)


def test_the_tables_name_tasks_that_exist():
    assert {*SOLUTION_IN_METADATA, *NO_SOLUTION} <= set(TASKS)


def test_an_entry_has_question_answer_and_metadata(entries):
    for entry in entries:
        assert_is_entry(entry)


def test_the_highest_seed_makes_an_entry(pool, task):
    arguments = (jobs_for_conformance.make_asked_entry, task, {}, HIGHEST_SEED)
    assert_is_entry(pool.call(*arguments, deadline_s=DEADLINE_S))


def test_gold_is_missing_in_the_listed_tasks_alone(task, entries):
    is_listed = task in SOLUTION_IN_METADATA or task in NO_SOLUTION
    assert [entry["answer"] is None for entry in entries] == [is_listed] * len(SEEDS)


def test_the_right_answer_scores_one(pool, task, entries):
    for entry in entries:
        answer = right_answer(task, entry)
        if answer is None:
            assert task in NO_SOLUTION
        else:
            assert score(pool, task, entry, answer) == [Score(1.0, "right", answer)]


def test_an_entry_is_the_same_again_elsewhere_and_afresh(
    pool, other_pool, task, seeds, entries
):
    make, afresh = worker_jobs.make_entry, jobs_for_conformance.build_entry_afresh
    for where, job in ((pool, make), (other_pool, make), (pool, afresh)):
        assert for_every_seed(where, job, task, seeds) == entries, job


def test_saying_nothing_scores_nothing(pool, task, entries):
    for entry in entries:
        texts = [text for text in ("", "...") if text != entry["answer"]]
        scores = score(pool, task, entry, *texts)
        assert max(s.value for s in scores) <= WRONG_AT_MOST


def test_scores_survive_the_way_between_processes(pool, task, seeds, entries):
    for seed, entry in zip(seeds, entries, strict=True):
        gold = right_answer(task, entry) or "no solution"
        answers = [gold, f"{gold} or so"]
        job = jobs_for_conformance.score_where_made
        made = pool.call(job, task, seed, answers, deadline_s=DEADLINE_S)
        assert score(pool, task, entry, *answers) == read_rows(answers, made)
