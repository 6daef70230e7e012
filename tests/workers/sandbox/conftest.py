"""One pool that all tests of the sandbox attack, with every layer active."""

import pytest

from rg_env.library import worker_jobs
from tests.support.worker_attacks import LAYERS, new_pool, worker_of


@pytest.fixture(scope="session")
def pool():
    """A pool of one worker; skips the tests if the kernel lacks a layer."""
    with new_pool(preload=worker_jobs.PRELOAD) as pool:
        worker_of(pool)
        if pool.sandbox_layers != LAYERS:
            pytest.skip(f"this kernel gives a worker {pool.sandbox_layers} only")
        yield pool
