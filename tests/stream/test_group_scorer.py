"""Scores of a group through real workers: who loses what, and who does not."""

import asyncio
import contextlib
import functools

import jobs_for_items
import pytest
import reasoning_gym

from rg_env.library import worker_jobs
from rg_env.reward.score import ScoringRules
from rg_env.stream import group_scorer
from rg_env.stream.group_scorer import GroupScorer
from rg_env.stream.item import Item
from rg_env.workers.call import CallOptions
from rg_env.workers.worker_pool import WorkerPool
from tests.support.parts import ENTRY_OF_FOUR as OF_FOUR
from tests.support.parts import Exact

GUARD_S = 60.0
SHORT_DEADLINE_S = 0.4


@pytest.mark.processes
@pytest.mark.usefixtures("odd_jobs")
@pytest.mark.parametrize(
    ("task", "metadata"),
    [("countdown", {}), ("composite", {"source_dataset": "n_queens"})],
)
def test_code_that_ran_in_a_scorer_spoils_no_other_group(monkeypatch, task, metadata):
    once = functools.partial(CallOptions, max_untrusted_calls=1)
    monkeypatch.setattr(group_scorer, "CallOptions", once)
    entry = {"question": "2 + 2?", "answer": "4", "metadata": metadata}
    answers = [("gcd", "5"), (task, jobs_for_items.TAKEOVER), (task, "5"), ("gcd", "5")]
    with contextlib.closing(WorkerPool(1)) as pool:
        scorer = GroupScorer(pool, GUARD_S, ScoringRules())
        scores = [scorer.score_blocking(Item(t), entry, a) for t, a in answers]
    assert [score.value for score in scores] == [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("task", "answer", "rules", "outcome"),
    [
        ("countdown", "__import__('os').getpid()", {}, "rejected"),
        ("prime_factorization", "two", {"scorer_fixes": False}, "scorer_error"),
    ],
)
def test_a_zero_says_why(pool, task, answer, rules, outcome):
    entry = pool.call(worker_jobs.make_entry, task, {}, 3, deadline_s=GUARD_S)
    scorer = GroupScorer(pool, GUARD_S, ScoringRules(**rules))
    score = scorer.score_blocking(Item(task), entry, answer)
    assert (score.value, score.outcome) == (0.0, outcome)


@pytest.mark.usefixtures("odd_jobs")
@pytest.mark.parametrize(
    ("odd", "outcome"),
    [(jobs_for_items.SLOW, "timeout"), (jobs_for_items.EXIT, "scorer_error")],
)
def test_only_the_answer_that_hangs_or_ends_its_worker_loses_its_score(
    pool, monkeypatch, odd, outcome
):
    monkeypatch.setattr(group_scorer, "MAX_ANSWERS_PER_CALL", 2)
    scorer = GroupScorer(pool, SHORT_DEADLINE_S, ScoringRules())
    scores = asyncio.run(scorer.score_group(Item("gcd"), OF_FOUR, ["4", odd, "5"]))
    assert [score.value for score in scores] == [1.0, 0.0, 0.0]
    assert [score.outcome for score in scores] == ["right", outcome, "wrong"]


SLOW_TO_BUILD = {"n": 12, "min_remove": 2, "max_remove": 10}


@pytest.mark.parametrize("of_library", [False, True])
def test_deadline_counts_the_answer_and_not_the_dataset(pool, of_library):
    entry = pool.call(
        worker_jobs.make_entry,
        "n_queens",
        SLOW_TO_BUILD,
        1663347094,
        deadline_s=GUARD_S,
    )
    dataset = Item("n_queens", SLOW_TO_BUILD)
    if of_library:
        dataset = reasoning_gym.create_dataset("n_queens", size=1, **SLOW_TO_BUILD)
    with contextlib.closing(WorkerPool(1)) as cold:
        scorer = GroupScorer(cold, 0.2, ScoringRules())
        score = scorer.score_blocking(dataset, entry, entry["answer"])
    assert score.value == 1.0


def test_an_object_that_is_not_the_library_s_scores_here_and_normalized():
    gone = WorkerPool(1)
    gone.close()
    scorer = GroupScorer(gone, GUARD_S, ScoringRules())
    scores = asyncio.run(scorer.score_group(Exact(), OF_FOUR, ["**4**", "4", "5"]))
    assert [s.outcome for s in scores] == ["right", "right", "wrong"]
    assert [s.normalized for s in scores] == [True, False, False]
