"""The thread for work that would hold up the event loop."""

import asyncio
import math
import threading

import pytest

from rg_env import off_loop


def test_errors_come_back_from_the_thread():
    with pytest.raises(ZeroDivisionError):
        asyncio.run(off_loop.off_loop(divmod, 1, 0))


def test_there_is_one_thread_for_all():
    async def run():
        calls = (off_loop.off_loop(threading.get_ident) for _ in range(5))
        return set(await asyncio.gather(*calls))

    assert len(asyncio.run(run()) | asyncio.run(run())) == 1


def test_the_gil_is_released_only_after_some_work(monkeypatch):
    pauses = []
    monkeypatch.setattr(off_loop.time, "sleep", pauses.append)
    monkeypatch.setattr(off_loop, "RELEASE_EVERY_S", 3600)
    monkeypatch.setattr(off_loop, "_released_s", -math.inf)
    off_loop.release_gil()
    off_loop.release_gil()
    assert len(pauses) == 1
