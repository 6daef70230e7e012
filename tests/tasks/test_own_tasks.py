"""A user's tasks in workers: items, scales, rules, and who is blamed for what."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from rg_env.items import worker_jobs
from rg_env.workers.pool_errors import JobError
from rg_env.workers.worker_pool import WorkerPool

pytestmark = pytest.mark.processes

FILE = Path(__file__).resolve().parents[1] / "support" / "own_tasks.py"
GUARD_S = 120.0


@pytest.fixture(scope="module")
def own():
    """A pool whose workers know the tasks of `tests/support/own_tasks.py`."""
    pool = WorkerPool(2, preload=worker_jobs.preload_of([str(FILE)]))
    yield pool
    pool.close()


def called(pool, job, *args, deadline_s=GUARD_S):
    return pool.call(job, *args, deadline_s=deadline_s)


def test_they_are_described_beside_the_librarys(own):
    library = called(own, worker_jobs.describe_library)
    info = library.tasks["double"]
    assert (info.category, info.asks) == ("own", "Twice a number.")
    assert info.parameters == {"highest": "999"}
    assert "double" in library.own_names and "gcd" not in library.own_names
    assert library.versions.keys() == {"reasoning_gym", "own_tasks"}


def test_an_entry_is_its_seed_alone_though_everybodys_generator_is_read(own):
    made = [called(own, worker_jobs.make_entry, "double", {}, 4, False)]
    called(own, worker_jobs.make_entry, "gcd", {}, 5)
    made += [called(own, worker_jobs.make_entry, "double", {}, 4, False)] * 2
    assert made[1:] == made[:1] * 2
    other = called(own, worker_jobs.make_entry, "double", {}, 5, False)
    assert other["question"] != made[0]["question"]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("raises", "ZeroDivisionError: division by zero, at own_tasks.py:"),
        ("makes_no_entry", "TypeError: an entry is a dict with question and answer"),
        (
            "reads_a_file",
            "PermissionError: [Errno 13] Permission denied: '/etc/passwd'",
        ),
    ],
)
def test_what_a_data_set_raises_is_blamed_on_its_line(own, task, expected):
    with pytest.raises(JobError) as caught:
        called(own, worker_jobs.make_entry, task, {}, 1)
    assert caught.value.kind == "OwnTaskError"
    assert caught.value.message.startswith(expected)


def test_the_scale_is_every_level_that_the_config_accepts(own):
    scale = called(own, worker_jobs.own_scale, "double")
    highest = [step.params.get("highest", 999) for step in scale.steps]
    assert highest == [9, 99, 999] and scale.default_level == 1.0
    assert [skip.level for skip in scale.skipped] == [3]
    assert (
        "its config refuses it: AssertionError: highest must be below 10000, at own_"
        in scale.skipped[0].reason
    )
    no_scale = called(own, worker_jobs.own_scale, "raises")
    assert no_scale == "no curriculum is registered with it"


def entry_of(own, task="double", seeds=range(50)):
    """Return an entry that is used: the number is even."""
    for seed in seeds:
        with contextlib.suppress(JobError):
            return called(own, worker_jobs.make_entry, task, {}, seed)
    raise AssertionError("there is one")


def outcomes(own, task, answers, entry):
    rows = called(own, worker_jobs.score_answers, task, {}, entry, answers)
    return [row[1] for row in rows]


def test_rules_of_the_module_hold(own):
    entry = entry_of(own)
    gold = entry["answer"]
    assert int(gold) // 2 % 2 == 0
    answers = [gold, f"00{gold}", f"{gold}7", "reject", "break the notation"]
    expected = ["right", "right", "wrong", "rejected", "scorer_error"]
    assert outcomes(own, "double", answers, entry) == expected


def test_a_fix_whose_digest_is_another_one_rests(own):
    entry = called(own, worker_jobs.make_entry, "overpays", {}, 1)
    assert outcomes(own, "overpays", ["please"], entry) == ["right"]
    assert called(own, worker_jobs.describe_fixes)["overpays"] is False


def test_an_answer_on_which_the_scorer_raises_costs_itself_alone(own):
    entry = called(own, worker_jobs.make_entry, "scorer_hangs", {}, 1)
    answers = [entry["answer"], "raise", "no"]
    found = outcomes(own, "scorer_hangs", answers, entry)
    assert found == ["right", "scorer_error", "wrong"]
