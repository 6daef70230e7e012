"""Inference servers that misbehave: a fault ends in another try, never in a lost item.

Sockets and servers are real; the model is that of the tests.
"""

import asyncio
import contextlib
import logging

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.inference import connection, server_health, servers
from rg_env.inference.completions import Sampling
from rg_env.inference.server_health import EJECTED_AFTER_FAILURES
from tests.support.faults import RETRY_AFTER_S, always, listed
from tests.support.inference_server import inference_server
from tests.support.parts import env_config, server_config

pytestmark = pytest.mark.slow


def timeout_of(fault):
    """Return the timeout of requests: for what hangs the least that the host takes."""
    return 1 if fault == "hang" else 60


KINDS = {
    "status_500": {"status_500"},
    "status_429": {"status_429"},
    "hang": {"TimeoutError"},
    "reset": {"ServerDisconnectedError", "ClientOSError"},
    "not_json": {"BadReplyError"},
    "too_few": {"unusable"},
    "abort_one": {"finish_reason_abort"},
    "empty_one": {"unusable"},
}
"""What a failed request may be counted as, by the server's fault."""


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    """Pauses of a twentieth, so that no test waits for them."""
    monkeypatch.setattr(server_health, "PAUSE_S", 0.02)
    monkeypatch.setattr(server_health, "MAX_PAUSE_S", 0.1)
    monkeypatch.setattr(server_health, "HEALTH_EVERY_S", 0.02)
    monkeypatch.setattr(servers, "CHECK_FOR_SERVER_S", (0.005, 0.01))


@contextlib.asynccontextmanager
async def beside(*scripts, timeout=60, health_check=False):
    """Yield an environment and servers of scripts, probed while they were healthy."""
    async with contextlib.AsyncExitStack() as running:
        servers = [
            await running.enter_async_context(inference_server(listed()))
            for _ in scripts
        ]
        configs = [
            server_config(server.url, timeout=timeout, health_check=health_check)
            for server in servers
        ]
        env = ReasoningGymEnv(env_config(), configs)
        running.push_async_callback(env.close)
        for client, server, script in zip(
            env.server.servers, servers, scripts, strict=True
        ):
            await client.probe()
            server.begin(script)
        yield env, *servers


async def query(env):
    """Query four completions, as a group does."""
    prompt = await env._prompts.prompts.render(env._prompts.messages("2 + 2"))
    return await env._servers.generate(prompt, 4, Sampling(64, 1.0, 1.0, "train"))


async def query_often(env):
    """Query sixteen groups, eight at once."""
    places = asyncio.Semaphore(8)

    async def one():
        async with places:
            return await query(env)

    return await asyncio.gather(*(one() for _ in range(16)))


def said(logged):
    return [r.getMessage() for r in logged.records if r.levelno >= logging.WARNING]


def of_items(server):
    """Return how often a server was queried for more than a probe's one token."""
    return len(server.arrivals) - server.probes


# -- one request that fails ------------------------------------------------------------


@pytest.mark.parametrize("fault", KINDS)
async def test_a_request_that_fails_once_is_tried_again_and_counted_by_its_kind(
    fault, logged
):
    async with beside(listed(fault), timeout=timeout_of(fault)) as (env, _):
        assert len(await query(env)) == 4
    assert env._servers.failures_by_kind.total() == 1
    assert set(env._servers.failures_by_kind) <= KINDS[fault]
    assert said(logged) == []


# -- one of several servers ------------------------------------------------------------


@pytest.mark.parametrize("fault", ["reset", "hang"])
async def test_one_of_two_that_fails_is_left_out_and_taken_back(fault, logged):
    both = beside(always(fault), listed(), timeout=timeout_of(fault))
    async with both as (env, failing, _):
        made = await query_often(env)
        (opened,) = said(logged)
        before = of_items(failing)
        # One that hangs may be left out by its probe before.
        least = EJECTED_AFTER_FAILURES if fault == "reset" else 1
        assert least <= before < 8 + EJECTED_AFTER_FAILURES
        made += await query_often(env)
        assert of_items(failing) == before
        failing.script = listed()
        while not env.server.servers[0].is_up:
            await query(env)
        taken_back = of_items(failing)
        await query_often(env)
        assert of_items(failing) > taken_back
    assert [len(group) for group in made] == [4] * 32
    assert said(logged) == [opened] and "is not used for now" in opened


async def test_a_server_that_says_when_to_try_again_is_not_queried_before(logged):
    async with beside(listed("status_429"), listed()) as (env, busy, free):
        while len(busy.arrivals) < 2:
            await query(env)
        first, second = busy.arrivals[:2]
        assert second - first >= RETRY_AFTER_S
        assert len(free.arrivals) > 3
    assert said(logged) == []


async def test_what_hangs_at_a_server_that_is_gone_is_queried_elsewhere(
    logged, monkeypatch
):
    monkeypatch.setattr(connection, "PAGE_S", 0.2)

    both = beside(listed(), listed(), timeout=3600, health_check=True)
    async with both as (env, gone, there):
        gone.runs.clear()
        await query_often(env)
        answered_there = there.completions
        gone.runs.set()
        while not env.server.servers[0].is_up:
            await query(env)
        assert answered_there == 16 * 4
    (opened,) = said(logged)
    assert "is not used for now" in opened
