"""The answer key: lazy, bounded, counted, and never in the way of the event loop."""

import asyncio
import itertools
import threading

import pytest

from rg_env.simulation.answer_key import AnswerKey, AsyncKey
from rg_env.simulation.policy import KeyEntry


def entry(name):
    return KeyEntry("gcd", "arithmetic", str(name), f"answer to {name}", None)


def endless(prefix="q"):
    return (entry(f"{prefix}{number}") for number in itertools.count())


def test_a_question_of_the_stream_is_found():
    key = AnswerKey([endless()])
    assert key.find("q7") == entry("q7")


def test_no_more_is_drawn_than_the_question_needs():
    key = AnswerKey([endless()])
    key.find("q7")
    assert key.drawn == 8


def test_a_question_drawn_earlier_is_found_again_without_drawing():
    key = AnswerKey([endless()])
    key.find("q7")
    assert key.find("q2") == entry("q2")
    assert key.drawn == 8


def test_an_unknown_question_ends_at_the_bound_and_is_counted():
    key = AnswerKey([endless()], max_draws=25)
    assert key.find("hi") is None
    assert (key.drawn, key.misses) == (25, 1)


def test_asking_again_for_a_missed_question_does_not_draw_again():
    key = AnswerKey([endless()], max_draws=25)
    key.find("hi")
    key.find("hi")
    assert (key.drawn, key.misses) == (25, 2)


def test_a_missed_question_is_found_once_another_has_drawn_it():
    key = AnswerKey([endless()], max_draws=25)
    assert key.find("q30") is None
    key.find("q40")
    assert key.find("q30") == entry("q30")


def test_the_streams_are_drawn_in_turn():
    key = AnswerKey([endless("train"), endless("eval")])
    assert key.find("eval3") == entry("eval3")
    assert key.lookup("train3") == entry("train3")


def test_an_ended_stream_leaves_the_draws_to_the_others():
    key = AnswerKey([iter([entry("only")]), endless()], max_draws=10)
    assert key.find("q8") == entry("q8")
    assert key.find("only") == entry("only")


def test_without_any_stream_every_question_is_unknown():
    assert AnswerKey([]).find("q1") is None


def test_the_oldest_entries_are_forgotten_at_the_limit():
    key = AnswerKey([endless()], max_known=5)
    key.find("q9")
    assert key.lookup("q4") is None
    assert key.lookup("q5") == entry("q5")


def test_the_loop_is_free_while_a_stream_is_slow():
    released = threading.Event()

    def slow():
        released.wait(10)
        yield entry("q")

    async def ask():
        key = AsyncKey(AnswerKey([slow()]))
        asking = asyncio.create_task(key.find("q"))
        await asyncio.sleep(0.05)
        assert not asking.done()
        released.set()
        found = await asking
        key.close()
        return found

    assert asyncio.run(ask()) == entry("q")


def test_a_fault_of_a_stream_reaches_the_one_who_asked():
    def broken():
        raise OSError("worker gone")
        yield

    with pytest.raises(OSError, match="worker gone"):
        AnswerKey([broken()]).find("q")
