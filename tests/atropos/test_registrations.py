"""Registrations of killed processes hold up no batch for long; living ones are kept."""

import asyncio

import pytest

from rg_env.atropos import api_client
from rg_env.atropos.api_client import LOOK_EVERY_S, LOOKS, is_marked, marked
from tests.support.real_api import (
    ENVIRONMENT,
    SETTINGS,
    SIZE,
    RealApi,
    group,
    session_at,
)

ROUNDS = 20


@pytest.fixture
def api(api_url, tmp_path):
    api = RealApi(api_url, tmp_path)
    api.start_trainer(batch_size=2 * SIZE)
    return api


@pytest.fixture
def clock(monkeypatch):
    """Return the time in seconds, as a list of one value that a test moves on."""
    time_s = [0.0]
    monkeypatch.setattr(api_client, "_now", lambda: time_s[0])
    return time_s


class Environment:
    """What `serve` does about registrations."""

    def __init__(self, api, session):
        self.api, self.session = api, session

    async def look(self):
        await self.session.read_status()
        if await self.session.may_be_ended(2 * SIZE):
            await self.session.register("env", SETTINGS)

    async def send(self):
        me = {"env_id": self.session.env_id}
        await asyncio.to_thread(self.api.query, "POST", "/scored_data", group() | me)


def register_other(api):
    """Register an environment of another program, which looks at nothing."""
    theirs = {**ENVIRONMENT, "min_batch_allocation": 0.5}
    api.query("POST", "/register-env", theirs)


async def batches_after(clock, *environments, rounds=ROUNDS):
    """Let time pass, with the looks of environments; return how many groups come."""
    for _ in range(rounds):
        clock[0] += LOOK_EVERY_S
        for each in environments:
            await each.look()
    return len(await asyncio.to_thread(environments[0].api.batches))


@pytest.mark.parametrize("number", [1, 2])
def test_those_of_killed_processes_hold_up_no_batch(api, clock, logged, number):
    async def run():
        for _ in range(number):
            async with session_at(api.url) as killed:
                killed.env_id = None  # it says nothing at its end
        async with session_at(api.url) as session:
            env = Environment(api, session)
            for _ in range(2):
                await env.send()
            first = len(await asyncio.to_thread(api.batches))
            for _ in range(2):
                await env.send()
            later = await batches_after(clock, env, rounds=LOOKS + 1)
            return session.env_id, first + later, api.connected()

    assert asyncio.run(run()) == (number, 4, 1)
    assert logged.text.count("ended the registration of environment") == number


def test_one_that_lives_and_is_slow_keeps_its_minimum_and_loses_no_group(api, clock):
    async def run():
        async with session_at(api.url) as one, session_at(api.url) as other:
            quick, slow = Environment(api, one), Environment(api, other)
            for _ in range(2):
                await quick.send()
            waited = await batches_after(clock, quick, slow)
            connected = await asyncio.to_thread(api.connected)
            await slow.send()
            return waited, connected, len(await asyncio.to_thread(api.batches))

    assert asyncio.run(run()) == (0, 2, 2)


def test_one_that_hung_and_was_ended_registers_again(api, clock):
    async def run():
        async with session_at(api.url) as one, session_at(api.url) as other:
            quick, hung = Environment(api, one), Environment(api, other)
            for _ in range(2):
                await quick.send()
            taken = await batches_after(clock, quick)
            before = await asyncio.to_thread(api.connected)
            await hung.look()
            return taken, before, await asyncio.to_thread(api.connected)

    assert asyncio.run(run()) == (2, 1, 2)


def test_a_number_that_a_new_api_gave_to_somebody_else_is_not_ended(api, clock):
    async def run():
        async with session_at(api.url) as session:
            env = Environment(api, session)
            api.forget()
            api.start_trainer(batch_size=2 * SIZE)
            register_other(api)
            clock[0] += 10 * LOOK_EVERY_S
            await env.look()
            return session.env_id, await asyncio.to_thread(api.connected)

    assert asyncio.run(run()) == (1, 2)


def test_one_of_another_program_is_left_alone(api, clock):
    register_other(api)

    async def run():
        async with session_at(api.url) as session:
            env = Environment(api, session)
            for _ in range(2):
                await env.send()
            return await batches_after(clock, env), api.connected()

    assert asyncio.run(run()) == (0, 2)


@pytest.mark.parametrize("product", [32768.0, 0.5])
def test_a_mark_is_recognised_in_a_share_and_changes_none(product):
    own, others = marked(product), marked(81920.0) + 12345.67
    total = own + others
    found = (own / total) / (others / total) * others
    assert is_marked(found) and not is_marked(product)
    assert found == pytest.approx(product, rel=1e-2)
