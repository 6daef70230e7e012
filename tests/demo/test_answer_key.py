"""The answer key: lazy, bounded, counted, and never in the way of the event loop."""

import asyncio
import itertools

import pytest

from rg_env.demo import answer_key
from rg_env.demo.answer_key import (
    AnswerKey,
    Run,
    eval_entry,
    eval_specs,
    sampled_entries,
)
from rg_env.demo.policy import KeyEntry
from rg_env.items import worker_jobs
from rg_env.items.entry_maker import EntryMaker
from rg_env.items.installed_library import prepare_difficulty
from rg_env.items.item_source import ItemSource
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.tasks.curriculum import Curriculum
from rg_env.tasks.selection import TaskChoice
from rg_env.workers.worker_pool import WorkerPool


def entry(name):
    return KeyEntry("gcd", "arithmetic", str(name), f"answer to {name}", None)


async def endless():
    for number in itertools.count():
        yield entry(f"q{number}")


async def few(*names):
    for name in names:
        yield entry(name)


@pytest.fixture
def bounded(monkeypatch):
    monkeypatch.setattr(answer_key, "MAX_DRAWS", 25)
    monkeypatch.setattr(answer_key, "MAX_AHEAD", 60)


def find(key, *questions):
    """Ask for questions one after the other; return what was found for the last."""

    async def ask():
        return [await key.find(question) for question in questions][-1]

    return asyncio.run(ask())


def test_no_more_is_drawn_than_a_question_needs_which_is_found_again_without():
    key = AnswerKey(endless())
    assert find(key, "q7") == entry("q7")
    assert find(key, "q2") == entry("q2")
    assert key.drawn == 8


def test_an_unknown_question_ends_at_the_bound_and_is_drawn_for_once(bounded):
    key = AnswerKey(endless())
    assert find(key, "hi") is None
    assert (key.drawn, key.misses) == (25, 1)
    find(key, "hi")
    assert (key.drawn, key.misses) == (25, 2)


def test_a_missed_question_is_found_once_another_has_drawn_it(bounded):
    key = AnswerKey(endless())
    assert find(key, "q30", "q40", "q30") == entry("q30")
    assert key.misses == 1


def test_other_questions_make_nobody_forget_the_first_ones(bounded):
    key = AnswerKey(endless())
    assert find(key, "q0", *(f"another {n}" for n in range(50)), "q1") == entry("q1")
    assert key.drawn <= 61
    assert find(key, "q60") == entry("q60")


def test_what_is_told_or_known_from_the_beginning_is_found_without_drawing():
    key = AnswerKey(endless(), known=[entry("e1")])
    key.remember(entry("told"))
    assert (find(key, "e1"), find(key, "told")) == (entry("e1"), entry("told"))
    assert key.drawn == 1  # what was told counts


def test_a_stream_that_ends_and_none_leave_the_rest_unknown():
    key = AnswerKey(few("a", "b"))
    assert find(key, "b", "c") is None
    assert find(key, "a") == entry("a")
    assert find(AnswerKey(), "q1") is None


def test_the_oldest_entries_are_forgotten_at_the_limit_and_the_known_ones_are_not(
    monkeypatch,
):
    monkeypatch.setattr(answer_key, "MAX_KNOWN", 5)
    key = AnswerKey(endless(), known=[entry("e1")])
    find(key, "q9")
    assert key.lookup("q4") is None
    assert key.lookup("q5") == entry("q5")
    assert key.lookup("e1") == entry("e1")


async def test_questions_asked_at_once_are_drawn_for_one_after_the_other():
    key = AnswerKey(endless())
    found = await asyncio.gather(*(key.find(f"q{n}") for n in (5, 2, 7, 5)))
    assert found == [entry("q5"), entry("q2"), entry("q7"), entry("q5")]
    assert key.drawn == 8


async def test_the_loop_is_free_while_a_stream_is_slow():
    released = asyncio.Event()

    async def slow():
        await released.wait()
        yield entry("q")

    key = AnswerKey(slow())
    asking = asyncio.create_task(key.find("q"))
    await asyncio.sleep(0.05)
    assert not asking.done()
    released.set()
    assert await asking == entry("q")


def test_a_fault_of_a_stream_reaches_the_one_who_asked():
    async def broken():
        raise OSError("worker gone")
        yield

    with pytest.raises(OSError, match="worker gone"):
        find(AnswerKey(broken()), "q")


# -- whatever an environment asks is known ---------------------------------------------


CHOICES = [TaskChoice("coin_flip"), TaskChoice("gcd")]
"""The first has few questions, so that it repeats itself again and again."""


async def build_run(pool: WorkerPool) -> Run:
    library = await pool.run(worker_jobs.describe_library, deadline_s=60.0)
    names = [choice.task for choice in CHOICES]
    difficulty = await prepare_difficulty(
        pool, names, library.tasks, "random", {}, Curriculum(0.5)
    )
    return Run(library, CHOICES, difficulty, 7, 123, 3)


def source_of(pool: WorkerPool, run: Run) -> ItemSource:
    stream = run.build_stream()
    return ItemSource(
        stream,
        EntryMaker(pool, stream, making_at_once=1, deadline_s=30.0),
        lookahead=4,
        scoring_deadline_s=30.0,
        rules=ScoringRules(),
    )


@pytest.mark.processes
async def test_every_question_of_a_run_is_known(pool: WorkerPool) -> None:
    run = await build_run(pool)
    made = [await eval_entry(pool, run, spec) for spec in eval_specs(run)]
    evaluated = [entry for each in made for entry in each]
    questions = {entry.question for entry in evaluated}
    sources = [source_of(pool, run), source_of(pool, run)]
    for source in sources:
        source.keep_for_evaluation(questions)
    asked = sampled_entries(run, sources[0])
    key = AnswerKey(asked, known=evaluated)
    items = [await sources[1].next_item() for _ in range(100)]
    found = [await key.find(item.entry["question"]) for item in items]
    for source in sources:
        source.cancel_ahead()
    assert sources[1].events["repeats_avoided"] > 10
    assert None not in found


@pytest.mark.processes
async def test_evaluation_items_are_known_without_drawing(pool: WorkerPool) -> None:
    run = await build_run(pool)
    made = [await eval_entry(pool, run, spec) for spec in eval_specs(run)]
    found = [entry.task for each in made for entry in each]
    assert found == ["coin_flip"] * 3 + ["gcd"] * 3
