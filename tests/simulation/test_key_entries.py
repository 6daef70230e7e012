"""The answer key's streams are those that the environment asks."""

from __future__ import annotations

import asyncio
import itertools

import jobs_for_items
import pytest

from rg_env.answers.scoring_rules import ScoringRules
from rg_env.items import worker_jobs
from rg_env.items.entry_maker import EntryMaker
from rg_env.items.item_source import ItemSource
from rg_env.pool.worker_pool import WorkerPool
from rg_env.simulation.key_entries import Run, train_entries
from rg_env.tasks import library
from rg_env.tasks.item_stream import ItemStream
from rg_env.tasks.sampler import Sampler
from rg_env.tasks.selection import TaskChoice

SEED = 7
COUNT = 40
CHOICES = [
    TaskChoice("gcd", params={"space": 12, "unusable_below": 2**30}),
    TaskChoice("lcm", params={"space": 40}),
]
"""Tasks with entries that nobody can solve, and with questions that come again."""

KEPT = [f"lcm {number}" for number in range(5)]


async def asked_questions(pool: WorkerPool) -> list[str]:
    stream = ItemStream(Sampler([choice.weight for choice in CHOICES], SEED), CHOICES)
    source = ItemSource(
        stream,
        EntryMaker(pool, stream, making_at_once=2, deadline_s=30.0),
        lookahead=4,
        scoring_deadline_s=30.0,
        rules=ScoringRules(),
    )
    source.keep_for_evaluation(KEPT)
    asked = [(await source.next_item()).entry["question"] for _ in range(COUNT)]
    events = source.events
    source.cancel_ahead()
    assert min(events["items_unusable"], events["evaluations_avoided"]) > 0
    assert min(events["repeats_avoided"], events["repeats_asked"]) > 0
    return asked


def test_the_key_holds_what_the_environment_asks_also_where_an_attempt_is_replaced(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_jobs, "make_entry", jobs_for_items.make_entry)
    run = Run(library.describe(), CHOICES, None, SEED, eval_seed=1, samples_per_task=1)
    known = itertools.islice(train_entries(pool, run, KEPT), COUNT)
    questions = [entry.question for entry in known]
    assert questions == asyncio.run(asked_questions(pool))
