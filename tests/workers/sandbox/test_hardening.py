"""Limits on a worker, and which layers protect from it."""

import pytest

from rg_env.workers.worker_pool import DEFAULT_MEMORY_LIMIT_BYTES
from tests.support.worker_attacks import LAYERS, evaluate, execute, fails_with, new_pool

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("RLIMIT_AS", DEFAULT_MEMORY_LIMIT_BYTES),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_CPU", 3600),
        ("RLIMIT_FSIZE", 2**24),
        ("RLIMIT_NOFILE", 64),
    ],
)
def test_limit_is_set_and_cannot_be_raised(pool, name, limit):
    source = f"(r := __import__('resource')).getrlimit(r.{name})"
    assert evaluate(pool, source) == (limit, limit)
    raising = f"import resource as r; r.setrlimit(r.{name}, (2**40, 2**40))"
    fails_with(pool, "ValueError", raising)


def test_open_files_are_bounded(pool):
    fails_with(pool, "OSError", "kept = [open('/dev/null') for _ in range(99)]")


def test_nothing_but_the_channel_is_open():
    source = """\
import os
def is_open(fd):
    try: return bool(os.fstat(fd))
    except OSError: return False
assert sum(map(is_open, range(64))) == 4
"""
    with new_pool(preload=["numpy"]) as fresh:
        execute(fresh, source)


def test_layers_are_reported_by_the_pool(pool):
    assert pool.sandbox_layers == LAYERS
    with new_pool() as unused:
        assert unused.sandbox_layers == ()


def test_scorer_that_tries_gets_an_outcome(pool):
    source = (
        "__import__('rg_env.reward.score', fromlist=['_']).score_answer("
        "'x', {}, lambda answer, entry: __import__('os').fork())"
    )
    assert evaluate(pool, source)["outcome"] == "scorer_error"
