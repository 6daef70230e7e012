"""An error that ends a command is one sentence; only a defect has a traceback."""

from __future__ import annotations

import errno
import subprocess
import sys

import aiohttp
import pytest

from rg_env.atropos.api_client import ApiError
from rg_env.cli import error_reports
from rg_env.cli.main import load_class
from rg_env.errors import LibraryError, SettingError
from rg_env.installation import InstallationError
from rg_env.library.datasets import OwnTaskError
from rg_env.workers.call import JobError, WorkerDiedError
from tests.support.parts import REPO_ROOT

IN_LIBRARY = 'File "/x/site-packages/reasoning_gym/games/maze.py", line 3, in f\n'
IN_OURS = 'File "/x/rg_env/library/worker_jobs.py", line 3, in f\n'
TRACEBACK = "Traceback (most recent call last):\n"
FULL = OSError(errno.ENOSPC, "No space left on device", "/data/x")

SENTENCES = [
    (SettingError("env.x: no"), 2, "env.x: no\n"),
    (LibraryError("it is broken"), 2, "it is broken\n"),
    (ModuleNotFoundError("No module", name="no_one"), 2, "the package no_one cannot"),
    (MemoryError(), 1, "the machine's memory is full"),
    (FULL, 1, "[Errno 28] No space left on device: '/data/x'\n"),
    (ApiError("POST: 422"), 1, "the Atropos API failed: POST: 422"),
    (WorkerDiedError("was killed"), 1, "work in a worker process failed"),
    (
        aiohttp.ServerDisconnectedError(),
        1,
        "aiohttp failed (ServerDisconnectedError: Server disconnected)",
    ),
    (
        JobError("KeyError", "'a'", TRACEBACK + IN_OURS + IN_LIBRARY),
        1,
        "reasoning-gym failed (KeyError: 'a', at reasoning_gym/games/maze.py:3)",
    ),
    (
        JobError(OwnTaskError.__name__, "KeyError: 'a', at mine.py:3", IN_OURS),
        1,
        "a task of your own failed (KeyError: 'a', at mine.py:3)",
    ),
    (JobError("MemoryError", "", IN_OURS), 1, "a worker's memory is full; raise env."),
]


@pytest.mark.parametrize(("error", "status", "expected"), SENTENCES)
def test_an_error_that_is_no_defect_is_one_sentence(error, status, expected, capsys):
    assert error_reports.report_error(error) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"error: {expected}")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ModuleNotFoundError("No module", name="no_one"), InstallationError),
        (KeyError("a"), KeyError),
    ],
)
def test_a_missing_package_is_an_error_of_the_installation(error, expected):
    def env_class():
        raise error

    with pytest.raises(expected):
        load_class(env_class)


def raised(error):
    try:
        exec(compile("raise error", error_reports.__file__, "exec"), {"error": error})
    except type(error) as caught:
        # Without the frame of this file, which is the caller in a test alone.
        return caught.with_traceback(caught.__traceback__.tb_next)


@pytest.mark.parametrize(
    "error", [KeyError("a"), JobError("KeyError", "'a'", TRACEBACK + IN_OURS)]
)
def test_a_defect_shows_its_traceback_and_where_to_report_it(error, capsys):
    assert error_reports.report_error(raised(error)) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(TRACEBACK)
    last = printed.splitlines()[-1]
    assert last.startswith("error: this is a defect (KeyError: 'a')")
    assert last.endswith(f"where you got {REPO_ROOT}")


LEFT_ALONE = """
import asyncio, sys, threading
from rg_env.cli import error_reports
from rg_env.inference.connection import Failure, RequestFailedError
error_reports.install_exception_hooks()
async def fail(): raise RequestFailedError(Failure("gone", "gone"))
async def run():
    task = asyncio.ensure_future(fail())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
class Dies:
    def __del__(self): raise KeyError("x")
asyncio.run(run())
Dies()
for work in (sys.exit, lambda: open("/no/such/file")):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
raise OSError(28, "No space left on device")
"""


@pytest.mark.processes
def test_errors_outside_a_command_show_no_traceback(repo_root):
    done = subprocess.run(
        [sys.executable, "-c", LEFT_ALONE],
        cwd=repo_root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: [Errno 2] No such file or directory: '/no/such/file'",
        "error: [Errno 28] No space left on device",
    ]
