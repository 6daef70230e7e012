"""The errors of a pool as values."""

import pickle

import pytest

from rg_env.workers.pool_errors import (
    DeadlineExceeded,
    JobFailed,
    PoolClosed,
    PoolError,
    PreloadFailed,
    WorkerDied,
)


@pytest.mark.parametrize(
    "kind",
    [DeadlineExceeded, JobFailed, PoolClosed, PreloadFailed, WorkerDied],
)
def test_every_error_is_a_pool_error(kind):
    assert issubclass(kind, PoolError)


@pytest.mark.parametrize("kind", [JobFailed, PreloadFailed])
def test_what_was_raised_elsewhere_pickles(kind):
    error = kind("KeyError", "x", "Traceback")
    assert pickle.loads(pickle.dumps(error)).__dict__ == error.__dict__
