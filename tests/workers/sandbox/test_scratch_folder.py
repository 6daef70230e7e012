"""What a worker writes is bounded, and goes whatever it made of it."""

import contextlib
import os

import pytest

from rg_env.workers.call import WorkerDiedError
from tests.support.worker_attacks import LONG_S, execute, fails_with

pytestmark = pytest.mark.processes


def test_file_in_the_scratch_folder_is_bounded(pool):
    fails_with(pool, "OSError", "open('x', 'wb').write(bytes(2**25))")


def test_folders_deeper_than_python_recurses_hurt_nobody(pool):
    server = pool.call(os.getppid, deadline_s=LONG_S)
    source = "import os\nfor _ in range(1200): os.mkdir('x'); os.chdir('x')"
    for ending in ("", "os._exit(0)"):
        with contextlib.suppress(WorkerDiedError):
            execute(pool, f"{source}\n{ending}")
        assert pool.call(os.listdir, deadline_s=LONG_S) == []
    assert pool.call(os.getppid, deadline_s=LONG_S) == server
