"""The tasks of the examples: their own tests, and what the commands say of them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from rg_env.items import worker_jobs
from rg_env.scoring.score import read_rows
from rg_env.workers.worker_pool import WorkerPool

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "own_task"
GUARD_S = 120.0


@pytest.fixture(scope="module")
def pool():
    files = [str(FOLDER / f"{name}.py") for name in ("roman_numerals", "frozen_lake")]
    pool = WorkerPool(1, preload=worker_jobs.preload_of(files))
    with contextlib.closing(pool):
        yield pool


def test_the_tests_of_the_examples_pass():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "examples/own_task"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=GUARD_S,
    )
    assert done.returncode == 0, done.stdout
    assert " 5 passed" in done.stdout


@pytest.mark.parametrize(
    ("task", "steps", "write"),
    [
        ("roman_numerals", 4, str.lower),
        ("frozen_lake", 6, ", ".join),
    ],
)
def test_every_level_is_made_and_right_answers_may_be_written_otherwise(
    pool, task, steps, write
):
    scale = pool.call(worker_jobs.own_scale, task, deadline_s=GUARD_S)
    assert len(scale.steps) == steps and not scale.skipped
    for step in scale.steps:
        made = (worker_jobs.make_entry, task, step.params, 7)
        entry = pool.call(*made, deadline_s=GUARD_S)
        answers = [entry["answer"], write(entry["answer"]), "no"]
        call = (worker_jobs.score_answers, task, step.params, entry, answers)
        scores = read_rows(answers, pool.call(*call, deadline_s=GUARD_S))
        assert [score.value for score in scores] == [1.0, 1.0, 0.0]
