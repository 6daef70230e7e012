"""The thread for work that would hold up the event loop."""

import asyncio
import math
import threading

import pytest

from rg_env import executor


def test_there_is_one_thread_for_all():
    async def run():
        calls = (executor.in_thread(threading.get_ident) for _ in range(5))
        return set(await asyncio.gather(*calls))

    assert len(asyncio.run(run()) | asyncio.run(run())) == 1


def test_the_gil_is_released_only_after_some_work(monkeypatch):
    pauses = []
    monkeypatch.setattr(executor.time, "sleep", pauses.append)
    monkeypatch.setattr(executor, "RELEASE_EVERY_S", 3600)
    monkeypatch.setattr(executor, "_released_s", -math.inf)
    executor.release_gil()
    executor.release_gil()
    assert len(pauses) == 1


async def test_the_gil_is_not_released_in_an_event_loop(monkeypatch):
    monkeypatch.setattr(executor, "_released_s", -math.inf)
    monkeypatch.setattr(executor.time, "sleep", pytest.fail)
    executor.release_gil()
