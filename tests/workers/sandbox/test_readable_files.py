"""What making and scoring items reads can be read."""

import contextlib

import pytest

from rg_env.items import worker_jobs
from rg_env.task_rules.table import solution
from rg_env.tasks.library_import import TASKS
from rg_env.workers.pool_errors import JobError
from tests.support.worker_attacks import LONG_S, execute

pytestmark = pytest.mark.processes


def usable_entry(pool, task):
    for seed in range(1, 100):
        with contextlib.suppress(JobError):
            return pool.call(worker_jobs.make_entry, task, {}, seed, deadline_s=LONG_S)
    raise AssertionError(f"{task}: no seed makes an item")


def test_items_of_every_task_are_made_and_scored(pool):
    failed = {}
    for task in TASKS:
        entry = usable_entry(pool, task)
        gold = solution(task, entry)
        if gold is not None:
            call = (worker_jobs.score_answers, task, {}, entry, [gold])
            ((value, *_),) = pool.call(*call, deadline_s=LONG_S)
            if value != 1.0:
                failed[task] = value
    assert failed == {}


def test_packages_can_be_imported_late(pool):
    execute(pool, "import sqlite3, xml.dom.minidom, zoneinfo; zoneinfo.ZoneInfo('UTC')")
