"""A run whose parts call hooks: each rollout ends once, and no item is lost."""

import asyncio
import contextlib

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.atropos.hooks import with_hooks
from rg_env.inference.connection import RequestFailedError, refusal
from rg_env.inference.servers import Outage
from rg_env.run.group import Group
from rg_env.stream.group_scorer import ScoringUnavailableError
from tests.support.parts import ENTRY_OF_FOUR, NOWHERE, Exact, build_env
from tests.support.real_api import SIZE, EndsError, group

ITEM = ([{"role": "user", "content": "2 + 2?"}], ENTRY_OF_FOUR, Exact())
FAILED = RequestFailedError(refusal(500, b"overloaded"))
BROKEN = ScoringUnavailableError("no worker")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("rg_env.run.group_loop.ERROR_PAUSE_S", 0.001)


async def answered(item, on_replies, first):
    on_replies()
    return [{"item": item}] * SIZE


async def hangs(*_):
    await asyncio.Event().wait()


def giving(*results):
    """Return a hook that gives these results in turn; errors are raised."""
    left = list(results)

    async def give(*args, **how):
        result = left.pop(0) if len(left) > 1 else left[0]
        await asyncio.sleep(0)
        if isinstance(result, BaseException):
            raise result
        return result

    return give


NO_VARIANCE = giving(None)


@contextlib.asynccontextmanager
async def environment(query=answered, score=NO_VARIANCE, cls=ReasoningGymEnv):
    """Yield an environment whose servers and workers do what is asked of them."""
    env = build_env(NOWHERE, cls=cls, group_size=SIZE)
    env._model.query = query
    env.score = score
    try:
        yield env
    finally:
        await env.close()


def items_left(env):
    return [found.item for found in env.backlog]


def worked_on(query=answered, score=NO_VARIANCE, cls=ReasoningGymEnv):
    """Work on a group; return what its rollouts came to, and the items left."""

    async def run():
        async with environment(query, score, cls) as env:
            env._send_scored_data_to_api = giving(None)
            await with_hooks(env).work_on(Group(ITEM, env.ledger))
            assert env.ledger.in_flight == 0 and env.ledger.queried == SIZE
            return dict(env.ledger.endings), items_left(env)

    return asyncio.run(run())


# -- each rollout ends once ------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "score", "ending", "left"),
    [
        (answered, giving(group()), "sent", []),
        (answered, NO_VARIANCE, "zero_variance", []),
        (giving(FAILED), NO_VARIANCE, "unanswered", [ITEM]),
        (answered, giving(BROKEN), "unscored", [ITEM]),
    ],
)
def test_a_group_ends_once_and_a_lost_one_is_sampled_again(query, score, ending, left):
    assert worked_on(query, score) == ({ending: SIZE}, left)


HOOKS = ["collect_trajectories", "postprocess_histories", "handle_send_to_api"]


def with_hook(hook, does):
    async def overriding(self, *args, **how):
        if hook == "collect_trajectories":
            await super(cls, self).collect_trajectories(*args)
        return await does(self, *args, **how)

    cls = type("Bad", (ReasoningGymEnv,), {hook: overriding})
    return cls


@pytest.mark.parametrize("hook", HOOKS)
def test_what_a_hook_loses_to_an_error_or_drops_is_counted(hook):
    bad = with_hook(hook, giving(EndsError()))
    assert worked_on(score=giving(group()), cls=bad) == ({"failed": SIZE}, [ITEM])
    nothing = (None, []) if hook == "collect_trajectories" else None
    drops = with_hook(hook, giving(nothing))
    assert worked_on(score=giving(group()), cls=drops) == ({"discarded": SIZE}, [])


def test_rollouts_that_a_hook_adds_or_sends_without_their_item_end_as_well():
    class Own(ReasoningGymEnv):
        async def collect_trajectories(self, item):
            return group(), []  # without ours

        async def handle_send_to_api(self, scored_data, item=None, **how):
            await super().handle_send_to_api(scored_data, **how)

    assert worked_on(cls=Own) == ({"sent": SIZE}, [])


async def test_hooks_that_are_called_from_elsewhere_work_on_a_group_of_their_own():
    async with environment(giving(FAILED)) as env:
        assert await env.collect_trajectories(ITEM) == (None, [ITEM])
        env._send_scored_data_to_api = giving(None)
        env.ledger.query(SIZE)
        await env.handle_send_to_api(group())
        assert env.ledger.endings == {"unanswered": SIZE, "sent": SIZE}
        assert env.ledger.in_flight == 0


async def test_a_hook_that_queries_twice_at_once_has_each_rollout_counted_once():
    class Twice(ReasoningGymEnv):
        async def collect_trajectories(self, item):
            tries = [super(Twice, self).collect_trajectories(item) for _ in range(2)]
            _, answered = await asyncio.gather(*tries)
            return answered

    replies = giving(FAILED, [{"item": ITEM}] * SIZE)
    async with environment(replies, giving(group()), Twice) as env:
        env._send_scored_data_to_api = giving(None)
        await with_hooks(env).work_on(Group(ITEM, env.ledger))
        assert env.ledger.queried == 2 * SIZE
        assert env.ledger.endings == {"unanswered": SIZE, "sent": SIZE}


async def test_an_outage_costs_an_item_no_try():
    async with environment(giving(FAILED)) as env:
        env._servers.outage = Outage(log_at_s=0.0, began_s=-1e9)
        await with_hooks(env).work_on(Group(ITEM, env.ledger))
        assert [group.tries for group in env.backlog] == [0]


# -- groups of `serve` -----------------------------------------------------------------


async def filled(env, *items):
    """Begin groups of items as `serve` does."""
    env.backlog.extend(items)
    env._hooked_run = with_hooks(env)
    await env._window.fill(env._hooked_run, env._serve_group, lambda: env.backlog)


async def test_a_group_whose_hook_queries_in_a_task_frees_its_place_with_its_replies():
    class InATask(ReasoningGymEnv):
        async def collect_trajectories(self, item):
            assert len(self._querying) == 1
            return await asyncio.create_task(super().collect_trajectories(item))

    async with environment(answered, hangs, InATask) as env:
        await filled(env, ITEM)
        await asyncio.wait_for(env._window.freed.wait(), 60)
        assert (len(env.workers), len(env._querying)) == (1, 0)


async def test_the_event_loop_turns_between_two_groups_that_are_started():
    turns = []
    seen = []

    async def turn():
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    async def handle_env(item_uuid):
        seen.append(len(turns))

    async with environment() as env:
        env.handle_env = handle_env
        turning = asyncio.create_task(turn())
        await filled(env, *range(4))
        turning.cancel()
        assert env.running_items == {}
    assert len(seen) == len(set(seen)) == 4
