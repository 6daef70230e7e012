"""Two pools that all tests of the pool share: what one job does hurts no other."""

import pytest

from tests.support.worker_attacks import new_pool


@pytest.fixture(scope="session")
def pool():
    with new_pool(2) as pool:
        yield pool


@pytest.fixture(scope="session")
def single():
    """A pool of one worker, so that each call is served by it or its replacement."""
    with new_pool() as pool:
        yield pool
