"""The real Atropos API as our child: it answers, it ends, it never outlives us."""

import asyncio
import signal
import subprocess
import sys
import textwrap
import time

import aiohttp
import pytest

from rg_env.demo.api_process import running_api
from rg_env.demo.child_process import ChildError

pytestmark = pytest.mark.processes


async def get_json(url):
    async with aiohttp.ClientSession() as http, http.get(url) as response:
        return await response.json()


async def is_gone(url):
    try:
        await get_json(f"{url}/info")
    except aiohttp.ClientConnectionError:
        return True
    return False


async def test_it_answers_inside_the_context_and_leaves_nothing_but_its_log(tmp_path):
    async with running_api(log_path=tmp_path / "api.log") as url:
        inside = await get_json(f"{url}/status")
    gone = await is_gone(url)
    assert inside == {"current_step": 0, "queue_size": 0}
    assert gone and (tmp_path / "api.log").exists()


async def test_a_failed_start_shows_the_end_of_the_log():
    async with running_api() as url:
        again = running_api(int(url.rsplit(":", 1)[1]))
        with pytest.raises(ChildError, match="Address already in use"):
            await again.__aenter__()


def test_a_killed_owner_leaves_no_api_behind(repo_root):
    owner_code = textwrap.dedent("""
        import asyncio
        from rg_env.demo.api_process import running_api

        async def run():
            async with running_api() as url:
                print(url, flush=True)
                await asyncio.sleep(60)

        asyncio.run(run())
        """)
    command = [sys.executable, "-c", owner_code]
    pipe = {"stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=repo_root, **pipe) as owner:
        url = owner.stdout.readline().strip()
        owner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while not asyncio.run(is_gone(url)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
