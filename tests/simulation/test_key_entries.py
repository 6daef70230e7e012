"""The entries of the answer key: whatever an environment asks is among them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rg_env.answers.scoring_rules import ScoringRules
from rg_env.items import worker_jobs
from rg_env.items.entry_maker import EntryMaker
from rg_env.items.item_source import ItemSource
from rg_env.items.run_difficulty import prepare_difficulty
from rg_env.pool.worker_pool import WorkerPool
from rg_env.simulation import key_entries
from rg_env.simulation.answer_key import AnswerKey
from rg_env.tasks.curriculum import Curriculum
from rg_env.tasks.selection import TaskChoice

pytestmark = pytest.mark.processes

CHOICES = [TaskChoice("coin_flip"), TaskChoice("gcd")]
"""The first has few questions, so that it repeats itself again and again."""


async def build_run(pool: WorkerPool, curriculum: Curriculum) -> key_entries.Run:
    library = await pool.run(worker_jobs.describe_library, deadline_s=60.0)
    names = [choice.task for choice in CHOICES]
    difficulty = await prepare_difficulty(
        pool, names, library.tasks, "curriculum", {}, curriculum
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


def test_every_question_of_a_run_is_known_wherever_its_levels_move(
    pool: WorkerPool,
) -> None:
    async def follow() -> tuple[list[Any], ItemSource]:
        curriculum = Curriculum(0.5)
        run = await build_run(pool, curriculum)
        evaluated = [entry async for entry in key_entries.eval_entries(pool, run)]
        questions = {entry.question for entry in evaluated}
        source = source_of(pool, run)
        source.keep_for_evaluation(questions)
        asked = key_entries.entries_of_every_step(pool, run, questions)
        key = AnswerKey(asked, known=evaluated, max_draws=1_000)
        found = []
        for number in range(100):
            for choice in CHOICES:
                curriculum.set_level(choice.task, number % 5 / 20)
            item = await source.next_item()
            found.append(await key.find(item.entry["question"]))
        source.cancel_ahead()
        return found, source

    found, source = asyncio.run(follow())
    assert source.events["repeats_avoided"] > 10
    assert None not in found


def test_evaluation_items_are_known_without_drawing(pool: WorkerPool) -> None:
    async def entries() -> list[str]:
        run = await build_run(pool, Curriculum(0.5))
        return [entry.task async for entry in key_entries.eval_entries(pool, run)]

    assert asyncio.run(entries()) == ["coin_flip"] * 3 + ["gcd"] * 3
