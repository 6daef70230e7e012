"""What the tests of the pool and of the sandbox share: jobs, scripts, processes.

Jobs are `exec` and `eval` of the standard library, so that each attack is read where
it is made and no worker has to import a file of the tests.
"""

import contextlib
import math
import os
import subprocess
import sys

import pytest

from rg_env.installation import PROJECT
from rg_env.workers.call import JobError
from rg_env.workers.worker_pool import WorkerPool

LONG_S = 120.0
HANG_IN_C = "pow(9, 9**9)"
LAYERS = ("limits", "landlock", "seccomp")
"""Of the sandbox, on a kernel that has them all."""


def new_pool(size=1, **options):
    """Return a pool that is closed with its context."""
    return contextlib.closing(WorkerPool(size, **options))


def works(pool):
    return pool.call(math.sqrt, 4.0, deadline_s=LONG_S) == 2.0


def worker_of(pool):
    """Return the process that serves the next call of a pool of one worker."""
    return pool.call(os.getpid, deadline_s=LONG_S)


def execute(pool, source, deadline_s=LONG_S, **names):
    pool.call(exec, source, names, deadline_s=deadline_s)


def evaluate(pool, source, **names):
    return pool.call(eval, source, names, deadline_s=LONG_S)


def fails_with(pool, kind, source, **names):
    with pytest.raises(JobError) as caught:
        execute(pool, source, **names)
    assert caught.value.class_name == kind, str(caught.value)


def start_script(folder, source, **variables):
    script = folder / "script.py"
    script.write_text(source)
    return subprocess.Popen(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": str(PROJECT)} | variables,
        stdout=subprocess.PIPE,
        text=True,
    )


def run_script(folder, source, **variables):
    with start_script(folder, source, **variables) as script:
        output = script.communicate(timeout=LONG_S)[0]
    assert script.returncode == 0, output
    return output
