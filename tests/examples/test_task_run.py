"""A whole run: real API, real `serve`, the small server, and a policy in numpy."""

import json
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, nullcontext

import pytest

from examples.train_small import curve, recipe
from examples.train_small.grpo import Ratios
from examples.train_small.task_run import RunProgress, check_weights, to_the_end
from examples.train_small.training import Step
from rg_env.errors import RunFailed
from rg_env.reports.evaluation_summary import Estimate
from tests.examples.small_training import TASK, run_folder, train
from tests.parts import descendants, left_alive

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
    assert history[0]["ratios"]["furthest"] < 1e-5
    assert result["held_out_that_were_asked"] == 0
    assert len(result["asked"]) >= STEPS * 8
    # It was evaluated in the midst, too.
    assert [score.items for *_, score in result["during"]][:1] == [before.items]


def started(folder, steps):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.examples.small_training", str(folder), steps],
        stderr=subprocess.PIPE,
        text=True,
    )


def steps_noted(folder):
    history = run_folder(folder) / "checkpoints" / "history.jsonl"
    return history.read_text().splitlines() if history.is_file() else []


@pytest.mark.processes
@pytest.mark.slow
def test_a_run_that_ctrl_c_ends_leaves_nothing_running_and_goes_on(tmp_path):
    first = started(tmp_path, "24")
    deadline = time.monotonic() + GUARD_S
    while len(steps_noted(tmp_path)) < 21:
        assert first.poll() is None, first.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    before = steps_noted(tmp_path)
    processes = descendants(first.pid)
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=GUARD_S)
    assert first.returncode == 128 + signal.SIGINT
    assert said.splitlines()[-1] == "ended; the same command continues"
    assert processes
    assert not left_alive(processes)
    second = started(tmp_path, "24")
    _, said = second.communicate(timeout=GUARD_S)
    assert second.returncode == 0, said
    after = steps_noted(tmp_path)
    assert after[:20] == before[:20]  # its checkpoint: they are not done again
    assert [json.loads(line)["number"] for line in after] == list(range(1, 25))


def test_held_out_scores_of_steps_that_are_done_again_are_forgotten(tmp_path):
    noted = tmp_path / recipe.DURING
    noted.write_text('{"step": 40}\n{"step": 55}\n')
    scores = {TASK: Estimate(0.5, 0.4, 0.6, 100)}
    RunProgress("a run", tmp_path, scores, set()).go_on_at(40)
    assert noted.read_text() == '{"step": 40}\n'


def test_what_fails_is_said_in_one_sentence(capsys):
    def fail(open_):
        raise RunFailed("the inference server ended")

    assert to_the_end(fail) == 1
    assert capsys.readouterr().err == "error: the inference server ended\n"


def test_what_was_opened_ends_with_the_work_that_fails(capsys):
    ended = []

    def fail(open_):
        open_.callback(ended.append, True)
        raise RunFailed("no")

    to_the_end(fail)
    assert ended == [True]


@pytest.mark.parametrize(
    ("apart", "is_first", "is_refused"),
    [(0.01, True, False), (0.3, True, True), (0.3, False, False), (0.6, False, True)],
)
def test_a_batch_of_other_weights_ends_the_run(apart, is_first, is_refused):
    ratios = Ratios(mean=1.0, apart=apart, furthest=1.0, clipped=0.0)
    step = Step(1, 0.5, 0.0, 1.0, ratios, 0.0, 10, 1.0, 1.0, 1.0)
    refused = pytest.raises(RunFailed, match="off on average")
    with refused if is_refused else nullcontext():
        check_weights(step, is_first=is_first)
