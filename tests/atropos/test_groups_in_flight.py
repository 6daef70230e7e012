"""Groups in flight: each rollout ends once, and what is lost is sampled again."""

import asyncio
import contextlib
import time

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env import patience
from rg_env.atropos.groups_in_flight import Group
from rg_env.inference.request_failures import RequestFailedError, refusal
from rg_env.items.group_scorer import ScoringUnavailableError
from tests.support.parts import ENTRY_OF_FOUR, NOWHERE, Exact, build_env, until
from tests.support.real_api import SIZE, EndsError, after_registration, group

ITEM = ([{"role": "user", "content": "2 + 2?"}], ENTRY_OF_FOUR, Exact())
FAILED = RequestFailedError(refusal(500, "overloaded"))
BROKEN = ScoringUnavailableError("no worker")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    for name in ("ERROR_PAUSE_S", "OUTAGE_FIRST_PAUSE_S", "OUTAGE_LONGEST_PAUSE_S"):
        monkeypatch.setattr(patience, name, 0.001)


async def answered(item, on_replies):
    on_replies()
    return [{"item": item}] * SIZE


async def hangs(*_):
    await asyncio.Event().wait()


def giving(*results):
    """Return a hook that gives these results in turn; errors are raised."""
    left = list(results)

    async def give(*args, **how):
        result = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(result, BaseException):
            raise result
        return result

    return give


NO_VARIANCE = giving(None)


@contextlib.asynccontextmanager
async def environment(query=answered, score=NO_VARIANCE, cls=ReasoningGymEnv):
    """Yield an environment whose servers and workers do what is asked of them."""
    env = build_env(NOWHERE, cls=cls, group_size=SIZE)
    env._requests.query, env.score = query, score
    try:
        yield env
    finally:
        await env.close()


def items_left(env):
    return [found.item for found in env.backlog]


def worked_on(query=answered, score=NO_VARIANCE, cls=ReasoningGymEnv, sends=None):
    """Work on a group; return what its rollouts came to, and the items left."""

    async def run():
        async with environment(query, score, cls) as env:
            env._send_scored_data_to_api = giving(sends)
            await env._groups.work_on(Group(ITEM, env.ledger))
            assert env.ledger.in_flight == 0 and env.ledger.queried == SIZE
            return dict(env.ledger.outcomes), items_left(env)

    return asyncio.run(run())


# -- each rollout ends once ------------------------------------------------------------


def test_a_group_that_is_sent_ends():
    assert worked_on(score=giving(group())) == ({"sent": SIZE}, [])


def test_a_group_without_variance_ends():
    assert worked_on() == ({"zero_variance": SIZE}, [])


@pytest.mark.parametrize(
    ("query", "score", "ending"),
    [
        (giving(FAILED), NO_VARIANCE, "unanswered"),
        (giving(KeyError("x")), NO_VARIANCE, "failed"),
        (answered, giving(BROKEN), "unscored"),
        (answered, giving(KeyError("x")), "failed"),
    ],
)
def test_a_group_that_is_lost_ends_and_its_item_is_sampled_again(query, score, ending):
    assert worked_on(query, score) == ({ending: SIZE}, [ITEM])


def test_a_broken_pool_gets_another_try():
    assert worked_on(score=giving(BROKEN, group())) == ({"sent": SIZE}, [])


HOOKS = ["collect_trajectories", "postprocess_histories", "handle_send_to_api"]


def with_hook(hook, does):
    async def overriding(self, *args, **how):
        if hook == "collect_trajectories":
            await super(cls, self).collect_trajectories(*args)
        return await does(self, *args, **how)

    cls = type("Bad", (ReasoningGymEnv,), {hook: overriding})
    return cls


@pytest.mark.parametrize("hook", HOOKS)
def test_a_group_that_a_hook_loses_to_an_error_is_counted_and_sampled_again(hook):
    bad = with_hook(hook, giving(EndsError()))
    assert worked_on(score=giving(group()), cls=bad) == ({"failed": SIZE}, [ITEM])


@pytest.mark.parametrize("hook", HOOKS)
def test_a_group_that_a_hook_drops_is_counted(hook):
    nothing = (None, []) if hook == "collect_trajectories" else None
    bad = with_hook(hook, giving(nothing))
    assert worked_on(score=giving(group()), cls=bad) == ({"discarded": SIZE}, [])


def test_an_error_after_the_send_loses_nothing():
    class BadTable(ReasoningGymEnv):
        add_rollouts_for_wandb = giving(EndsError())

    assert worked_on(score=giving(group()), cls=BadTable) == ({"sent": SIZE}, [])


def test_rollouts_that_a_hook_adds_or_sends_without_their_item_end_as_well():
    class Own(ReasoningGymEnv):
        async def collect_trajectories(self, item):
            return group(), []  # without ours

        async def handle_send_to_api(self, scored_data, item=None, **how):
            await super().handle_send_to_api(scored_data, **how)

    assert worked_on(cls=Own) == ({"sent": SIZE}, [])


def test_groups_of_one_item_object_end_each():
    async def run():
        async with environment(score=giving(None, group(), None, group())) as env:
            env._send_scored_data_to_api = giving(None)
            groups = [Group(ITEM, env.ledger) for _ in range(4)]
            await asyncio.gather(*map(env._groups.work_on, groups))
            return env.ledger.queried, env.ledger.in_flight

    assert asyncio.run(run()) == (4 * SIZE, 0)


def test_hooks_that_are_called_from_elsewhere_work_on_a_group_of_their_own():
    async def run():
        async with environment(giving(FAILED)) as env:
            found = await env.collect_trajectories(ITEM)
            env._send_scored_data_to_api = giving(None)
            env.ledger.query(SIZE)
            await env.handle_send_to_api(group())
            return found, dict(env.ledger.outcomes), env.ledger.in_flight

    found, outcomes, in_flight = asyncio.run(run())
    assert found == (None, [ITEM]) and in_flight == 0
    assert outcomes == {"unanswered": SIZE, "sent": SIZE}


def test_an_item_that_was_lost_too_often_is_not_sampled_again():
    async def run():
        async with environment(giving(FAILED)) as env:
            env.backlog.append(ITEM)
            while env.backlog:
                await env._groups.work_on(await env._groups.next_group())
            return dict(env.ledger.outcomes)

    assert asyncio.run(run()) == {"unanswered": patience.ITEM_TRIES * SIZE}


def test_errors_are_logged_with_their_traceback_ever_more_seldom(logged):
    async def run():
        async with environment(giving(KeyError("x"))) as env:
            for _ in range(9):
                await env.collect_trajectories(ITEM)
            return env.metrics.events["errors"]

    assert asyncio.run(run()) == 9
    said = [record for record in logged.records if "a group failed" in record.message]
    assert len(said) == 4  # 1, 2, 4, 8
    assert all(record.exc_info for record in said)


# -- groups of `serve` -----------------------------------------------------------------


@contextlib.asynccontextmanager
async def started(query=hangs, score=NO_VARIANCE):
    """Yield an environment with one group in flight."""
    async with environment(query, score) as env:
        env._groups.start(Group(ITEM, env.ledger), env.handle_env)
        await asyncio.sleep(0)
        yield env


def cancel_as_the_host(env):
    for worker in env.workers:
        worker.cancel()


def cancel_for_its_time(env):
    for running in env.running_items.values():
        running.began_s -= env.config.worker_timeout + 1
    env._groups.cancel_timed_out(env.config.worker_timeout)


@pytest.mark.parametrize("cancel", [cancel_as_the_host, cancel_for_its_time])
@pytest.mark.parametrize("query", [hangs, giving(FAILED), giving(KeyError("x"))])
def test_a_group_that_is_cancelled_ends_and_its_item_is_sampled_again(
    cancel, query, monkeypatch
):
    for name in ("ERROR_PAUSE_S", "OUTAGE_FIRST_PAUSE_S", "OUTAGE_LONGEST_PAUSE_S"):
        monkeypatch.setattr(patience, name, 60.0)  # the cancel comes in the pause

    async def run():
        async with started(query) as env:
            cancel(env)
            await until(lambda: not env.workers, "the worker has ended")
            return items_left(env), env.running_items, env.ledger.in_flight

    assert asyncio.run(run()) == ([ITEM], {}, 0)


def test_a_group_within_its_time_is_not_cancelled_though_the_clock_jumps(monkeypatch):
    async def run():
        async with started() as env:
            now = time.time()
            monkeypatch.setattr(time, "time", lambda: now + 10**6)
            (running,) = env.running_items.values()
            running.began_s -= env.config.worker_timeout - 60
            env._groups.cancel_timed_out(env.config.worker_timeout)
            await asyncio.sleep(0)
            return len(env.workers), items_left(env)

    assert asyncio.run(run()) == (1, [])


def test_a_group_frees_its_place_with_its_replies_though_a_task_of_a_hook_queries():
    class InATask(ReasoningGymEnv):
        async def collect_trajectories(self, item):
            return await asyncio.create_task(super().collect_trajectories(item))

    async def run():
        async with environment(score=hangs, cls=InATask) as env:
            groups = env._groups
            groups.start(Group(ITEM, env.ledger), env.handle_env)
            places = [len(groups.querying)]
            await asyncio.wait_for(groups.freed.wait(), 60)
            return [*places, len(groups.querying)]

    assert asyncio.run(run()) == [1, 0]


def test_a_hook_of_the_framework_reads_its_entry_of_the_running_items():
    async def run():
        async with started() as env:
            (running,) = env.running_items.values()
            return running["item"], running["worker"] in env.workers, running

    item, is_worker, running = asyncio.run(run())
    assert (item, is_worker) == (ITEM, True) and running["start_time"] > 0


@pytest.mark.parametrize(("every_s", "is_said"), [(0.0, True), (3600.0, False)])
def test_a_summary_is_logged_after_a_group_once_in_a_while(
    every_s, is_said, monkeypatch, logged
):
    every = "rg_env.atropos.groups_in_flight.SUMMARY_EVERY_S"
    monkeypatch.setattr(every, every_s)

    async def run():
        async with started(answered) as env:
            await asyncio.gather(*env.workers)
            return logged.text

    assert (f"{SIZE} rollouts queried" in asyncio.run(run())) is is_said


@pytest.mark.processes
def test_the_event_loop_turns_between_two_groups_that_are_started(api_url):
    turns = 0

    async def turn():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def work(env):
        seen = []

        def start(group, handle_env):
            seen.append(turns)
            env.workers.add(group)
            env._groups.querying.add(group)

        await env.get_status()
        env.backlog.extend(range(4))
        env._groups.start = start
        turning = asyncio.create_task(turn())
        await env.add_train_workers()
        turning.cancel()
        env.workers.clear()
        return seen

    seen = asyncio.run(after_registration(api_url, 16, work, max_num_workers=4))
    assert len(seen) == len(set(seen)) == 4


@pytest.mark.parametrize("turns", range(6))
def test_a_cancel_is_not_lost_to_a_worker_that_is_freed_meanwhile(turns):
    async def run():
        async with environment() as env:
            tick = asyncio.create_task(env._groups.wait_for_place(0.1))
            await asyncio.sleep(0.01)
            env._groups.freed.set()
            for _ in range(turns):
                await asyncio.sleep(0)
            was_running = tick.cancel()
            await asyncio.wait([tick])
            return was_running, tick.cancelled()

    was_running, cancelled = asyncio.run(run())
    assert cancelled is was_running
