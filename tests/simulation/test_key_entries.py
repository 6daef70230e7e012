"""The entries of the answer key: whatever an environment asks is among them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rg_env.items import worker_jobs
from rg_env.items.entry_maker import EntryMaker
from rg_env.items.installed_library import prepare_difficulty
from rg_env.items.item_source import ItemSource
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.simulation import key_entries
from rg_env.simulation.answer_key import AnswerKey
from rg_env.tasks.curriculum import Curriculum
from rg_env.tasks.selection import TaskChoice
from rg_env.workers.worker_pool import WorkerPool

pytestmark = pytest.mark.processes

CHOICES = [TaskChoice("coin_flip"), TaskChoice("gcd")]
"""The first has few questions, so that it repeats itself again and again."""


async def build_run(pool: WorkerPool) -> key_entries.Run:
    library = await pool.run(worker_jobs.describe_library, deadline_s=60.0)
    names = [choice.task for choice in CHOICES]
    difficulty = await prepare_difficulty(
        pool, names, library.tasks, "random", {}, Curriculum(0.5)
    )
    return key_entries.Run(library, CHOICES, difficulty, 7, 123, 3)


def source_of(pool: WorkerPool, run: key_entries.Run) -> ItemSource:
    stream = run.build_stream()
    return ItemSource(
        stream,
        EntryMaker(pool, stream, making_at_once=1, deadline_s=30.0),
        lookahead=4,
        scoring_deadline_s=30.0,
        rules=ScoringRules(),
    )


def test_every_question_of_a_run_is_known(pool: WorkerPool) -> None:
    async def follow() -> tuple[list[Any], ItemSource]:
        run = await build_run(pool)
        evaluated = [entry async for entry in key_entries.eval_entries(pool, run)]
        questions = {entry.question for entry in evaluated}
        sources = [source_of(pool, run), source_of(pool, run)]
        for source in sources:
            source.keep_for_evaluation(questions)
        asked = key_entries.asked_entries(run, sources[0])
        key = AnswerKey(asked, known=evaluated)
        items = [await sources[1].next_item() for _ in range(100)]
        found = [await key.find(item.entry["question"]) for item in items]
        for source in sources:
            source.cancel_ahead()
        return found, sources[1]

    found, source = asyncio.run(follow())
    assert source.events["repeats_avoided"] > 10
    assert None not in found


def test_evaluation_items_are_known_without_drawing(pool: WorkerPool) -> None:
    async def entries() -> list[str]:
        run = await build_run(pool)
        return [entry.task async for entry in key_entries.eval_entries(pool, run)]

    assert asyncio.run(entries()) == ["coin_flip"] * 3 + ["gcd"] * 3
