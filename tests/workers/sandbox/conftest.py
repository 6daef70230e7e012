"""One pool that all tests of the sandbox attack, with every layer in force."""

import contextlib
import os

import pytest

from rg_env.library import worker_jobs
from rg_env.workers.worker_pool import WorkerPool
from tests.support.worker_attacks import LAYERS, LONG_S


@pytest.fixture(scope="session")
def pool():
    """A pool of one worker; kernels that lack a layer skip what attacks it."""
    with contextlib.closing(WorkerPool(1, preload=worker_jobs.PRELOAD)) as pool:
        pool.call(os.getpid, deadline_s=LONG_S)
        if pool.sandbox_layers != LAYERS:
            pytest.skip(f"this kernel gives a worker {pool.sandbox_layers} only")
        yield pool
