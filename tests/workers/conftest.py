"""Two pools that the tests of workers share, because no job harms another one."""

import pytest

from tests.support.worker_attacks import new_pool


@pytest.fixture(scope="session")
def pool():
    with new_pool(2) as pool:
        yield pool


@pytest.fixture(scope="session")
def single():
    """A pool of one worker, so every call runs on it or on its replacement."""
    with new_pool() as pool:
        yield pool
