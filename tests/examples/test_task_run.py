"""A whole run: real API, real `serve`, the small server, and a policy in numpy."""

import json
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

from examples.train_small import curve
from tests.examples.small_training import TASK, run_folder, train
from tests.support.processes import descendants, left_alive

STEPS = 40
GUARD_S = 120.0


def mean_reward(steps):
    return sum(step["reward"] for step in steps) / len(steps)


@pytest.mark.processes
@pytest.mark.slow
def test_the_held_out_score_rises_through_the_real_api_and_serve(tmp_path):
    with ExitStack() as running:
        train(tmp_path, STEPS, running)
    (result,) = curve.read(tmp_path)
    before, after = result["before"][TASK], result["after"][TASK]
    assert after.low > before.high
    history = result["history"]
    assert mean_reward(history[-5:]) > mean_reward(history[:5]) + 0.1
    # The first batch is of the weights that are trained: nothing but rounding differs.
    assert history[0]["furthest_ratio"] < 1e-5
    assert result["held_out_questions"] == before.clusters
    assert len(result["sampled"]) >= STEPS * 8


def started(folder, steps):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.examples.small_training", str(folder), steps],
        stderr=subprocess.PIPE,
        text=True,
    )


def steps_noted(folder):
    history = run_folder(folder) / "checkpoints" / "history.jsonl"
    return history.read_text().splitlines() if history.is_file() else []


def end_after(folder, steps, number):
    """End a run by a signal; return its status, its words and the steps it noted."""
    run = started(folder, "60")
    deadline = time.monotonic() + GUARD_S
    while len(steps_noted(folder)) < steps:
        assert run.poll() is None, run.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    processes = descendants(run.pid)
    run.send_signal(number)
    _, said = run.communicate(timeout=GUARD_S)
    assert processes
    assert not left_alive(processes)
    return run.returncode, said, steps_noted(folder)


@pytest.mark.processes
@pytest.mark.slow
def test_a_run_that_was_killed_or_interrupted_leaves_nothing_running_and_goes_on(
    tmp_path,
):
    *_, before = end_after(tmp_path, 21, signal.SIGKILL)
    status, said, after = end_after(tmp_path, len(before) + 1, signal.SIGINT)
    assert status == 128 + signal.SIGINT
    assert said.splitlines()[-1] == "ended; the same command continues"
    assert after[:20] == before[:20]  # its checkpoint: they are not done again
    numbers = [json.loads(line)["number"] for line in after]
    assert numbers == list(range(1, len(after) + 1))
