"""Fork servers that are started before there is a pool."""

import contextlib
import os

import pytest
from worker_attacks import LONG_S, find_descendants, run_script, wait_until_gone

from rg_env.cli import main as command_line
from rg_env.items import worker_jobs
from rg_env.pool import early_start
from rg_env.pool.worker_pool import DEFAULT_MEMORY_LIMIT_BYTES, WorkerPool

pytestmark = pytest.mark.processes


def begin_fork_server(module, memory_limit_bytes):
    """Begin one and return the processes that this has started.

    One that only starts the server may still be among them.
    """
    before = find_descendants(os.getpid())
    early_start.begin([module], memory_limit_bytes)
    return find_descendants(os.getpid()) - before


def test_pool_takes_over_the_fork_server_that_was_begun_for_it():
    begun = begin_fork_server("fractions", 2**31)
    with contextlib.closing(WorkerPool(1, preload=["fractions"])) as pool:
        assert pool.call(os.getppid, deadline_s=LONG_S) in begun
    wait_until_gone(begun)


@pytest.mark.parametrize(
    "asked", [{"preload": ["decimal"]}, {"preload": ["fractions"]}, {}]
)
def test_fork_server_that_was_begun_ends_when_the_pool_has_other_arguments(asked):
    begun = begin_fork_server("fractions", 2**30)
    assert begun
    with contextlib.closing(WorkerPool(1, **asked)) as pool:
        wait_until_gone(begun)
        assert pool.call(os.getppid, deadline_s=LONG_S) not in begun


BEGINS_AND_ENDS = """
import os, pathlib
from rg_env.pool import early_start
early_start.begin(["fractions"], None)
print(*pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())
"""


def test_fork_server_that_no_pool_takes_ends_with_the_process(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    begun = run_script(tmp_path, BEGINS_AND_ENDS, TMPDIR=str(scratch)).split()
    assert begun
    wait_until_gone(set(map(int, begun)))
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "count"),
    [("serve", 1), ("", 1), ("evaluate --env.seed 3", 1), ("tasks gcd", 0)],
)
def test_commands_that_make_items_begin_their_workers_before_they_import(
    command, count
):
    before = find_descendants(os.getpid())
    command_line.begin_workers(command.split())
    begun = find_descendants(os.getpid()) - before
    assert len(begun) == count
    early_start.take(worker_jobs.PRELOAD, DEFAULT_MEMORY_LIMIT_BYTES).close()
    wait_until_gone(begun)
