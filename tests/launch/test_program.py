"""A program of a run is restarted a few times, and ends with its children."""

import asyncio
import sys

import pytest

from rg_env.errors import RunError
from rg_env.launch.program import Program
from tests.support.parts import until
from tests.support.processes import left_alive

pytestmark = pytest.mark.processes

SLEEP = "import time; time.sleep(600)"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("rg_env.launch.program.RESTART_FIRST_PAUSE_S", 0.01)


def program(folder, code, **how):
    return Program("it", [sys.executable, "-c", code], folder, **how)


async def ended(folder, code, grace_s):
    """Return the log of a program that is ended once it has written."""
    one = program(folder, code)
    running = asyncio.create_task(one.run())
    await until(lambda: one.log.is_file() and one.log.read_text(), "it has begun")
    await one.end(grace_s)
    await running
    return one.log.read_text()


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise SystemExit('error: no disk here')", "no disk here"),
        ("pass", "its log is empty"),
    ],
)
def test_a_program_that_dies_too_often_ends_the_run(tmp_path, code, why, logged):
    with pytest.raises(RunError, match=rf"it has ended \(.*: {why}\) and is not"):
        asyncio.run(program(tmp_path, code).run())
    assert logged.text.count("starting it again") == 5


def test_a_program_that_ignores_sigterm_is_killed_with_its_children(tmp_path):
    code = (
        "import signal, subprocess, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        f"print(subprocess.Popen([sys.executable, '-c', '{SLEEP}']).pid); {SLEEP}"
    )

    assert left_alive([int(asyncio.run(ended(tmp_path, code, 0.1)))]) == []


def test_a_program_may_finish_its_work_when_it_is_to_end(tmp_path):
    code = f"""
import signal
def end(*_):
    time.sleep(0.2)
    raise SystemExit("saved")
signal.signal(signal.SIGTERM, end)
print("begun")
{SLEEP}
"""
    assert asyncio.run(ended(tmp_path, code, None)) == "begun\nsaved\n"
