"""The errors of a pool as values."""

import pickle

import pytest

from rg_env.pool.pool_errors import (
    DeadlineExceeded,
    JobFailed,
    PoolClosed,
    PoolError,
    PoolFull,
    WorkerDied,
)


@pytest.mark.parametrize(
    "kind", [DeadlineExceeded, JobFailed, PoolClosed, PoolFull, WorkerDied]
)
def test_every_error_is_a_pool_error(kind):
    assert issubclass(kind, PoolError)


def test_job_failed_pickles():
    error = JobFailed("KeyError", "x", "Traceback")
    assert pickle.loads(pickle.dumps(error)).__dict__ == error.__dict__
