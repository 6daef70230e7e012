"""A whole run: real API, real `serve`, the small server, and a policy in numpy."""

import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from examples.train_small import curve
from examples.train_small.options import read_options
from examples.train_small.plugin import Plugin
from examples.train_small.recipe import Run
from examples.train_small.servers import start_small
from examples.train_small.task_run import TaskRun
from examples.train_small.work_folder import WorkFolder
from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER
from tests.examples.policies import AnswerPolicy, load_policy

TASK, STEPS = "letter_counting", 40
CHANGES = {
    # The right answer is mostly 1, which the policy can learn.
    "task_params": {TASK: {"min_words": 2, "max_words": 3}},
    # A policy that is sure gives equal scores, and batches have to come still.
    "ensure_scores_are_not_same": False,
}
OPTIONS = f"--groups 8 --group-size 8 --steps {STEPS} --held-out 100 --learning-rate 20"


def train(folder, open_):
    work, start = WorkFolder(folder), folder / "start"
    AnswerPolicy().save_weights(start)
    shutil.copytree(TOKENIZER_FOLDER, work.serving, dirs_exist_ok=True)
    shutil.copytree(start, work.serving, dirs_exist_ok=True)
    log = work.logs / "server.log"
    server = start_small(work.serving, log, module="tests.examples.policies")
    open_.callback(server.kill)
    run, plugin = Run("grpo", (TASK,), CHANGES), Plugin(Path(sys.executable))
    options = read_options(OPTIONS.split())
    TaskRun(run, 0, options, work, plugin, server, start, load_policy).do()


@pytest.mark.processes
@pytest.mark.slow
def test_the_held_out_score_rises_through_the_real_api_and_serve(tmp_path):
    with ExitStack() as running:
        train(tmp_path, running)
    (result,) = curve.read(tmp_path)
    before, after = result["before"][TASK], result["after"][TASK]
    assert after.low > before.high
    rewards = [step["reward"] for step in result["history"]]
    assert sum(rewards[-5:]) > sum(rewards[:5]) + 0.5
    # The first batch is of the weights that are trained: nothing but rounding differs.
    assert result["history"][0]["furthest_ratio"] < 1e-5
    assert result["held_out_questions"] == before.clusters
    assert len(result["sampled"]) >= STEPS * 8
