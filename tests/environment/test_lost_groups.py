"""Groups in flight: what is cancelled or lost in a hook is counted and asked again."""

import asyncio
import contextlib
import time

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.atropos.group import Group
from rg_env.rollouts.ledger import Ending
from tests.support.parts import ENTRY_OF_FOUR, NOWHERE, Exact, build_env, until
from tests.support.real_api import SIZE, EndsError, group, hangs

ITEM = ([{"role": "user", "content": "2 + 2?"}], ENTRY_OF_FOUR, Exact())


@contextlib.asynccontextmanager
async def working(collect=hangs, cls=ReasoningGymEnv, **changes):
    """Yield an environment with one worker, in which a hook does what is asked."""
    env = build_env(NOWHERE, cls=cls, group_size=SIZE, **changes)

    async def collected(item):
        env.ledger.query(SIZE)
        try:
            return await collect(), []
        except asyncio.CancelledError:
            env.ledger.settle(Ending.CANCELLED, SIZE)
            raise

    env.collect_trajectories = collected
    env._groups.start(Group(ITEM), env.handle_env)
    await asyncio.sleep(0)
    try:
        yield env
    finally:
        await env.close()


def items_left(env):
    return [group.item for group in env.backlog]


def cancel_as_the_host(env):
    for worker in env.workers:
        worker.cancel()


def cancel_for_its_time(env):
    for running in env.running_items.values():
        running.began_s -= env.config.worker_timeout + 1
    env._groups.cancel_timed_out(env.config.worker_timeout)


@pytest.mark.parametrize("cancel", [cancel_as_the_host, cancel_for_its_time])
def test_a_worker_that_is_cancelled_returns_its_item(cancel):
    async def run():
        async with working() as env:
            cancel(env)
            await until(lambda: not env.workers, "the worker has ended")
            return items_left(env), env.running_items, dict(env.ledger.outcomes)

    assert asyncio.run(run()) == ([ITEM], {}, {"cancelled": SIZE})


def test_a_group_within_its_time_is_not_cancelled_though_the_clock_jumps(monkeypatch):
    async def run():
        async with working() as env:
            started = time.time()
            monkeypatch.setattr(time, "time", lambda: started + 10**6)
            (running,) = env.running_items.values()
            running.began_s -= env.config.worker_timeout - 60
            env._groups.cancel_timed_out(env.config.worker_timeout)
            await asyncio.sleep(0)
            return len(env.workers), items_left(env)

    assert asyncio.run(run()) == (1, [])


async def gives_group():
    return group()


async def fail(self, *args, **how):
    raise EndsError


async def drop(self, *args, **how):
    return None


BEFORE_IT_IS_SENT = ["postprocess_histories", "handle_send_to_api"]


def after_bad_hook(hook, does):
    async def run():
        bad = type("Bad", (ReasoningGymEnv,), {hook: does})
        async with working(gives_group, bad) as env:
            await until(lambda: not env.workers, "the worker has ended")
            return items_left(env), dict(env.ledger.outcomes), env.ledger.in_flight

    return asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize("hook", BEFORE_IT_IS_SENT)
def test_a_group_that_is_lost_in_a_hook_is_counted_and_sampled_again(hook):
    assert after_bad_hook(hook, fail) == ([ITEM], {"failed": SIZE}, 0)


@pytest.mark.parametrize("hook", BEFORE_IT_IS_SENT)
def test_a_group_that_a_hook_drops_is_counted(hook):
    assert after_bad_hook(hook, drop) == ([], {"discarded": SIZE}, 0)
