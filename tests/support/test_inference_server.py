"""What the server of the benchmarks counts, alone and over HTTP."""

import asyncio
import contextlib

import aiohttp

from rg_env.demo.http_app import serve_app
from tests.support import inference_server
from tests.support.faults import listed
from tests.support.inference_server import FaultyServer, RequestCounts
from tests.support.text_models import TextModel


def test_idle_time_is_the_time_without_a_request(monkeypatch):
    times = iter([2.0, 3.0, 5.0, 6.0, 10.0])
    counts = RequestCounts(_since=0.0)
    monkeypatch.setattr(inference_server.time, "monotonic", lambda: next(times))
    for change in (+1, +1, -1, -1):
        counts.move(change)
    found = counts.snapshot()
    assert found["idle_s"] == 2 + 4


@contextlib.asynccontextmanager
async def serving(latency_ms=0.0):
    """Yield a session, the URL of a server, and what it counts."""
    model = TextModel(lambda question, n: ["one two"] * n)
    server = FaultyServer(listed(), model, latency_ms)
    async with (
        serve_app(server.app(), notices_departures=True) as url,
        aiohttp.ClientSession() as session,
    ):
        yield session, url, server.served


async def ask(session, url):
    body = {"prompt": "hi", "n": 3, "max_tokens": 100}
    async with session.post(f"{url}/generate", json=body) as reply:
        return await reply.json()


async def until_in_flight(wanted, counts):
    while counts.in_flight != wanted:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_a_client_that_goes_away_counts_as_cancelled():
    async with serving(latency_ms=60_000) as (session, url, counts):
        asking = asyncio.create_task(ask(session, url))
        await until_in_flight(1, counts)
        await asyncio.sleep(0.1)
        asking.cancel()
        await until_in_flight(0, counts)
    assert (counts.cancelled, counts.cancelled_completions) == (1, 3)
    assert counts.completions == 0
