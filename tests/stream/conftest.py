"""The pool that all tests share, in the place of the one of this process."""

import jobs_for_items
import pytest

from rg_env.library import installed_library as pool_module
from rg_env.library import worker_jobs


@pytest.fixture(autouse=True)
def own_pool(request, monkeypatch):
    if "pool" in request.fixturenames:
        pool = request.getfixturevalue("pool")
        monkeypatch.setattr(pool_module, "_pools", {(): pool})


@pytest.fixture
def odd_jobs(monkeypatch):
    """Have workers make and score with the jobs of the tests."""
    for job in ("make_entry", "score_answers", "prepare_scores"):
        monkeypatch.setattr(worker_jobs, job, getattr(jobs_for_items, job))
