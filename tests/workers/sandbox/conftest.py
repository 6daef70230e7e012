"""One pool that all tests of the sandbox attack, with every layer in force."""

import pytest

from rg_env.library import worker_jobs
from tests.support.worker_attacks import LAYERS, new_pool, worker_of


@pytest.fixture(scope="session")
def pool():
    """A pool of one worker; kernels that lack a layer skip what attacks it."""
    with new_pool(preload=worker_jobs.PRELOAD) as pool:
        worker_of(pool)
        if pool.sandbox_layers != LAYERS:
            pytest.skip(f"this kernel gives a worker {pool.sandbox_layers} only")
        yield pool
