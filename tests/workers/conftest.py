"""Two pools that all tests of the pool share: what one job does hurts no other."""

import contextlib

import pytest

from rg_env.workers.worker_pool import WorkerPool


@pytest.fixture(scope="session")
def pool():
    with contextlib.closing(WorkerPool(2)) as pool:
        yield pool


@pytest.fixture(scope="session")
def single():
    """A pool of one worker, so that each call is served by it or its replacement."""
    with contextlib.closing(WorkerPool(1)) as pool:
        yield pool
