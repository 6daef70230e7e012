"""The answer key: lazy, bounded, counted, and never in the way of the event loop."""

import asyncio
import itertools

import pytest

from rg_env.cli.simulated_server_command import build_key
from rg_env.demo import model
from rg_env.demo.model import AnswerKey
from rg_env.demo.policy import KeyEntry
from rg_env.settings.environment_settings import CheckedSettings
from rg_env.stream.curriculum import Feedback
from rg_env.stream.prefetch import prepare_items
from rg_env.workers.worker_pool import WorkerPool


def entry(name):
    return KeyEntry("gcd", str(name), f"answer to {name}", None)


async def endless():
    for number in itertools.count():
        yield entry(f"q{number}")


@pytest.fixture
def bounded(monkeypatch):
    monkeypatch.setattr(model, "MAX_AHEAD", 25)


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


def test_unknown_questions_end_at_a_bound_beyond_the_newest_that_was_queried(bounded):
    key = AnswerKey(endless())
    assert find(key, "hi", "hi", "ho") is None
    assert (key.drawn, key.misses) == (25, 3)
    key = AnswerKey(endless())
    assert find(key, "hi", "q20", "q40", "hi", "q60") == entry("q60")
    assert (key.drawn, key.misses) == (41 + 25, 2)


# -- whatever an environment asks is known ---------------------------------------------


SETTINGS = CheckedSettings(
    tasks=["coin_flip", "gcd"],
    task_params={"gcd": {"max_numbers": 9}},
    task_weights={"coin_flip": 2.0},
    complexity_mode="random",
    seed=7,
    num_eval_samples_per_task=3,
)
"""The first task has few questions, so that it repeats itself again and again."""


@pytest.mark.processes
def test_every_question_of_a_run_is_known_and_those_of_the_evaluation_undrawn(
    pool: WorkerPool,
) -> None:
    async def follow() -> None:
        key = await build_key(pool, SETTINGS)
        made = await prepare_items(pool, SETTINGS, Feedback(0.7))
        evaluated = [
            item.entry["question"] for item in await made.evaluation.finished()
        ]
        assert len(evaluated) == 6
        assert None not in map(key.lookup, evaluated)
        items = [await made.next() for _ in range(100)]
        found = [await key.find(item.entry["question"]) for item in items]
        made.stop()
        assert made.events["repeats_avoided"] > 10
        assert None not in found

    asyncio.run(follow())
