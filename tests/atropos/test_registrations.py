"""Registrations of killed processes hold up no batch for long; living ones are kept."""

import contextlib

import pytest

from rg_env.atropos import api_client
from rg_env.atropos.api_client import (
    CHECK_EVERY_S,
    CHECKS_BEFORE_END,
    is_marked,
    marked,
)
from tests.support.real_api import (
    ENVIRONMENT,
    SETTINGS,
    SIZE,
    RealApi,
    group,
    session_at,
)


@pytest.fixture
def api(api_url):
    api = RealApi(api_url)
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
        self.api = api
        self.session = session

    async def check(self):
        await self.session.read_status()
        if await self.session.check_registrations(2 * SIZE):
            await self.session.register("env", SETTINGS)

    def send(self, number=1):
        me = {"env_id": self.session.env_id}
        for _ in range(number):
            self.api.query("POST", "/scored_data", group() | me)


@contextlib.asynccontextmanager
async def registered_at(api, number=1):
    """Yield registered environments; the first has sent what would fill a batch."""
    async with contextlib.AsyncExitStack() as sessions:
        found = [
            Environment(api, await sessions.enter_async_context(session_at(api.url)))
            for _ in range(number)
        ]
        found[0].send(2)
        yield found


def register_other(api):
    """Register an environment of another program, which checks nothing."""
    theirs = {**ENVIRONMENT, "min_batch_allocation": 0.5}
    api.query("POST", "/register-env", theirs)


async def batches_after(clock, *environments, rounds=20):
    """Let time pass, with the checks of environments; return how many groups come."""
    for _ in range(rounds):
        clock[0] += CHECK_EVERY_S
        for each in environments:
            await each.check()
    return len(environments[0].api.batches())


@pytest.mark.parametrize("number", [1, 2])
async def test_those_of_killed_processes_hold_up_no_batch(api, clock, logged, number):
    for _ in range(number):
        async with session_at(api.url) as killed:
            killed.env_id = None  # it says nothing at its end
    async with registered_at(api) as (env,):
        first = len(api.batches())
        env.send(2)
        later = await batches_after(clock, env, rounds=CHECKS_BEFORE_END + 1)
        assert (env.session.env_id, first + later, api.connected()) == (number, 4, 1)
    assert logged.text.count("ended the registration of environment") == number


async def test_one_that_lives_and_is_slow_keeps_its_minimum_and_loses_no_group(
    api, clock
):
    async with registered_at(api, 2) as (quick, slow):
        waited = await batches_after(clock, quick, slow)
        assert (waited, api.connected()) == (0, 2)
        slow.send()
        assert len(api.batches()) == 2


async def test_one_that_hung_and_was_ended_registers_again(api, clock):
    async with registered_at(api, 2) as (quick, hung):
        taken = await batches_after(clock, quick)
        assert (taken, api.connected()) == (2, 1)
        await hung.check()
        assert api.connected() == 2


async def test_a_number_that_a_new_api_gave_to_somebody_else_is_not_ended(api, clock):
    async with registered_at(api) as (env,):
        api.forget()
        api.start_trainer(batch_size=2 * SIZE)
        register_other(api)
        clock[0] += 10 * CHECK_EVERY_S
        await env.check()
        assert (env.session.env_id, api.connected()) == (1, 2)


async def test_one_of_another_program_is_left_alone(api, clock):
    register_other(api)
    async with registered_at(api) as (env,):
        waited = await batches_after(clock, env)
        assert (waited, api.connected()) == (0, 2)


@pytest.mark.parametrize("product", [32768.0, 0.5])
def test_a_mark_is_recognised_in_a_share_and_changes_none(product):
    ours = marked(product)
    others = marked(81920.0) + 12345.67
    total = ours + others
    found = (ours / total) / (others / total) * others
    assert is_marked(found) and not is_marked(product)
    assert found == pytest.approx(product, rel=1e-2)
