"""The table of presets, made of a checkout in the corpus' layout."""

from __future__ import annotations

import json

import pytest
import reasoning_gym

from rg_env.items import worker_jobs
from rg_env.workers.worker_pool import WorkerPool
from tools.make_published_settings import row_of, table_text


def write_run(checkout, run, task, *, changed=False, **params):
    """Write what one run was asked of a task."""
    dataset = reasoning_gym.create_dataset(task, seed=45, size=50, **params)
    questions = [entry["question"] for entry in dataset]
    if changed:
        questions[7] = "What was asked before?"
    config = {"size": 50, "seed": 45, "max_numbers": 2, **params}
    found = {"name": task, "config": config}
    found["results"] = [{"question": question} for question in questions]
    folder = checkout / "reasoninggym-paper-experiments/zero-shot/hard" / run / "any"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{task}.json").write_text(json.dumps(found))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    checkout = tmp_path_factory.mktemp("checkout")
    for run in ("one", "other"):
        write_run(checkout, run, "gcd", min_value=7)
        write_run(checkout, run, "lcm", changed=run == "other")
    pool = WorkerPool(1, preload=worker_jobs.PRELOAD)
    try:
        return row_of(pool, checkout, "hard")
    finally:
        pool.close()


@pytest.mark.processes
def test_the_parameters_that_differ_from_the_defaults_are_kept(made):
    assert made["params"] == {"gcd": {"min_value": 7}, "lcm": {}}


@pytest.mark.processes
def test_a_task_with_another_question_in_one_run_is_named(made):
    assert made["changed"] == ["lcm"]


def test_the_file_is_json_with_a_line_for_each_task():
    presets = {"rg-hard": {"params": {"gcd": {"a": [1]}, "lcm": {}}, "changed": []}}
    text = table_text("0.1.25", presets)
    assert json.loads(text) == {"library_version": "0.1.25", "presets": presets}
    assert '   "gcd": {"a": [1]},\n   "lcm": {}\n' in text
