"""A child program answers, ends, and never outlives its parent."""

import asyncio
import signal
import subprocess
import sys
import textwrap
import time

import aiohttp
import pytest

from rg_env.demo.child_process import running_program
from rg_env.errors import RunError, SettingError

pytestmark = pytest.mark.processes

PROGRAM = "tests.support.web_apps"


async def is_gone(url):
    try:
        async with aiohttp.ClientSession() as http, http.get(url):
            return False
    except aiohttp.ClientConnectionError:
        return True


async def test_a_program_runs_only_inside_its_context():
    async with running_program(PROGRAM, "0") as url:
        assert not await is_gone(url)
        again = running_program(PROGRAM, url.rsplit(":", 1)[1])
        with pytest.raises(RunError, match="address already in use"):
            await again.__aenter__()
    assert await is_gone(url)


async def test_a_program_that_refuses_to_start_gives_its_message():
    refused = running_program("rg_env.cli.console", "procezz")
    with pytest.raises(SettingError, match=r"^command line: No such command"):
        await refused.__aenter__()


def test_a_killed_parent_leaves_no_program_behind(repo_root):
    owner_code = textwrap.dedent(f"""
        import asyncio
        from rg_env.demo.child_process import running_program

        async def run():
            async with running_program("{PROGRAM}", "0") as url:
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
