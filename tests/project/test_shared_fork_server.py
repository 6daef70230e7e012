"""The fork server that the tests share: their pools have nothing else in common."""

import os

import pytest

from rg_env.workers.pool_errors import PoolClosedError
from rg_env.workers.worker_pool import WorkerPool
from tests.support.processes import left_alive

pytestmark = pytest.mark.processes

DEADLINE_S = 60.0


def ids_in(pool):
    """Return the process of a pool's worker and that of its fork server."""
    return [pool.call(job, deadline_s=DEADLINE_S) for job in (os.getpid, os.getppid)]


@pytest.fixture
def pools():
    made = WorkerPool(1), WorkerPool(1)
    yield made
    for each in made:
        each.close()


def test_pools_have_workers_of_their_own_of_one_fork_server(pools):
    (one, of_one), (other, of_other) = map(ids_in, pools)
    assert one != other and of_one == of_other


def test_a_pool_that_is_closed_ends_its_worker_and_no_other(pools):
    (one, fork_server), (other, _) = map(ids_in, pools)
    pools[0].close()
    assert left_alive([one]) == []
    assert ids_in(pools[1]) == [other, fork_server]


def test_a_pool_that_is_closed_gets_no_worker(pools):
    pools[0].close()
    with pytest.raises(PoolClosedError):
        ids_in(pools[0])
