"""A process that is registered at an API as an environment is, and stays.

    python -m tests.support.registered_process URL LEAST

It prints its number. LEAST is its minimum allocation, 0 for none.
"""

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from rg_env.atropos.api_client import ApiSession

PROGRAM = "tests.support.registered_process"
ROOT = Path(__file__).resolve().parents[2]
SIZE = 2
"""Rollouts of a group."""


def settings(least=0.5):
    """Return what an environment registers with."""
    return SimpleNamespace(
        inference_weight=1.0,
        group_size=SIZE,
        max_token_length=2048,
        min_batch_allocation=least or None,
    )


@contextlib.asynccontextmanager
async def registered(url, least=0.5):
    """Yield the session of one that is registered."""
    session = ApiSession(url)
    try:
        await session.register("env", settings(least))
        yield session
    finally:
        await session.leave()


@contextlib.contextmanager
def other_process(url, least=0.5):
    """Yield such a process, and kill it."""
    argv = [sys.executable, "-m", PROGRAM, url, str(least)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().strip().isdigit()
        try:
            yield process
        finally:
            process.kill()


async def main(url, least):
    async with registered(url, float(least)) as session:
        print(session.env_id, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
