"""What ends a command: one sentence, and a traceback for a defect of ours alone."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys

import aiohttp
import pytest

from rg_env.atropos.api_client import ApiRefusedError
from rg_env.cli import failures
from rg_env.demo.child_process import ChildError
from rg_env.errors import LibraryError, SettingError
from rg_env.inference.request_failures import Failure, RequestFailedError
from rg_env.tasks.own_tasks import OwnTaskError
from rg_env.workers.pool_errors import DeadlineExceededError, JobError, WorkerDiedError
from tests.support.parts import ENTRY, REPO_ROOT

IN_LIBRARY = 'File "/x/site-packages/reasoning_gym/games/maze.py", line 3, in f\n'
IN_OURS = 'File "/x/rg_env/items/worker_jobs.py", line 3, in f\n'
TRACEBACK = "Traceback (most recent call last):\n"


def os_error(number, file=None):
    return OSError(number, os.strerror(number), file)


SENTENCES: dict[str, tuple[BaseException, int, str]] = {
    "a setting": (SettingError("env.x: no"), 2, "error: env.x: no"),
    "the library": (LibraryError("it is broken"), 2, "error: it is broken"),
    "a package": (
        ModuleNotFoundError("No module named 'x'", name="no_one"),
        2,
        "error: the package no_one cannot be used",
    ),
    "memory": (MemoryError(), 1, "error: the machine's memory is full"),
    "a full disk": (
        os_error(errno.ENOSPC, "/data/x"),
        1,
        "error: /data/x: no space left on device",
    ),
    "too many files": (os_error(errno.EMFILE), 1, "error: too many open files"),
    "the API": (
        ApiRefusedError("POST /x: 422"),
        1,
        "error: the Atropos API refused a request: POST /x: 422",
    ),
    "inference": (
        RequestFailedError(Failure("gone", "gone")),
        1,
        "error: inference failed: gone",
    ),
    "a worker": (
        WorkerDiedError("was killed"),
        1,
        "error: work in a worker process failed",
    ),
    "a deadline": (DeadlineExceededError("not done after 3 s"), 1, "error: work in a"),
    "a connection": (
        aiohttp.ServerDisconnectedError(),
        1,
        "error: a connection failed (ServerDisconnectedError",
    ),
    "a program that refused to start": (
        ChildError("x ended with status 2", "line\nerror: the port is taken", 2),
        2,
        "error: the port is taken",
    ),
    "a program that did not start": (
        ChildError("x ended with status 1", "line\nKilled", 1),
        1,
        "error: x ended with status 1 (Killed)",
    ),
    "the library in a worker": (
        JobError("KeyError", "'a'", TRACEBACK + IN_OURS + IN_LIBRARY),
        1,
        "error: reasoning-gym failed (KeyError: 'a', at reasoning_gym/games/maze.py:3)",
    ),
    "a user's own task in a worker": (
        JobError(OwnTaskError.__name__, "KeyError: 'a', at mine.py:3", IN_OURS),
        1,
        "error: a task of your own failed (KeyError: 'a', at mine.py:3)",
    ),
    "memory of a worker": (
        JobError("MemoryError", "", TRACEBACK + IN_OURS),
        1,
        "error: a worker's memory is full; raise env.worker_memory_mb",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_what_is_no_defect_is_one_sentence(case, capsys):
    error, status, expected = SENTENCES[case]
    assert failures.end(error) == status
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(expected)
    assert said.err.count("\n") == 1


def raised(error, file=failures.__file__):
    try:
        exec(compile("raise error", file, "exec"), {"error": error})
    except type(error) as caught:
        # Without the frame of this file, which is the caller in a test alone.
        return caught.with_traceback(caught.__traceback__.tb_next)


DEFECTS: dict[str, BaseException] = {
    "ours": KeyError("a"),
    "ours in a worker": JobError("KeyError", "'a'", TRACEBACK + IN_LIBRARY + IN_OURS),
}


@pytest.mark.parametrize("case", DEFECTS)
def test_a_defect_is_its_traceback_and_where_to_report_it(case, capsys):
    assert failures.end(raised(DEFECTS[case])) == 1
    said = capsys.readouterr().err
    assert said.startswith(TRACEBACK)
    last = said.splitlines()[-1]
    assert last.startswith("error: this is a defect (KeyError: 'a')")
    assert f"please report it where you have {REPO_ROOT} from" in last


def test_a_reader_that_has_gone_is_told_nothing(capsys):
    assert failures.end(BrokenPipeError()) == failures.EXIT_UNREAD
    assert capsys.readouterr().err == ""


LEFT_ALONE = """
import asyncio, sys, threading
from rg_env.cli import failures
from rg_env.inference.request_failures import Failure, RequestFailedError
failures.catch_the_rest()
async def fail(): raise RequestFailedError(Failure("gone", "gone"))
async def run():
    task = asyncio.ensure_future(fail())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
class Dies:
    def __del__(self): raise KeyError("x")
asyncio.run(run())
Dies()
thread = threading.Thread(target=lambda: open("/no/such/file"))
thread.start()
thread.join()
raise OSError(28, "No space left on device")
"""


@pytest.mark.processes
def test_what_nobody_awaits_shows_no_traceback(repo_root):
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
        "error: /no/such/file: no such file or directory",
        "error: no space left on device",
    ]


def test_debug_logging_shows_the_traceback_as_well(capsys):
    logging.getLogger("rg_env").setLevel(logging.DEBUG)
    failures.end(raised(SettingError("env.x: no")))
    said = capsys.readouterr().err
    assert said.startswith(TRACEBACK)
    assert said.endswith("error: env.x: no\n")


@pytest.mark.processes
def test_a_reader_that_has_had_enough_is_told_nothing():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, ENTRY, "tasks"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (failures.EXIT_UNREAD, b"")
