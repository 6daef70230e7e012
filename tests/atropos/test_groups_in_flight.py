"""Groups in flight: their starts leave the loop its turns, and none stays for ever."""

import asyncio

import pytest

from tests.support.parts import build_env
from tests.support.real_api import after_registration


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
        env = build_env()
        tick = asyncio.create_task(env._groups.wait_for_place(0.1))
        await asyncio.sleep(0.01)
        env._groups.freed.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        was_running = tick.cancel()
        await asyncio.wait([tick])
        await env.close()
        return was_running, tick.cancelled()

    was_running, cancelled = asyncio.run(run())
    assert cancelled is was_running
