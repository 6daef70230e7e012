"""The trainer as a program, beside the three others that the README starts."""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from examples.trainer import train
from rg_env.demo.child_process import ChildProgram
from rg_env.installation import TOKENIZER_FOLDER
from tests.examples.policies import AnswerPolicy, load_policy
from tests.support.documents import ROOT
from tests.support.parts import ENTRY, GUARD_S

STEPS = 30
TASK = "letter_counting"
WITHOUT_TORCH = """
import sys
from examples.trainer import train
from tests.examples.policies import load_policy
sys.exit(train.main(make_policy=load_policy))
"""


@pytest.fixture
def model(tmp_path):
    """Return a folder with a model that has not learnt anything."""
    folder = tmp_path / "policy"
    shutil.copytree(TOKENIZER_FOLDER, folder)
    AnswerPolicy().save_weights(folder)
    (folder / "config.json").write_text("{}")
    return folder


def history_of(model):
    path = model.with_name("policy-checkpoints") / "history.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.is_file() else []
    return [json.loads(line) for line in lines]


def command_lines(model, api_port, server):
    """Return the arguments of Python for each program, by its name."""
    api = f"http://127.0.0.1:{api_port}"
    changes = {
        "env.tokenizer_name": model,
        "env.rollout_server_url": api,
        "env.tasks": TASK,
        # The right answer is mostly 1, which the policy can learn.
        "env.task_params": {TASK: {"min_words": 2, "max_words": 3}},
        "env.complexity_mode": None,
        "env.num_workers": 1,
        "env.ensure_scores_are_not_same": False,
        "env.data_dumps_dir": model.with_name("dumps"),
        "openai.base_url": f"{server}/v1",
    }
    config = ROOT / "examples" / "serve_trainer.yaml"
    serve = [ENTRY, "serve", "--config", config]
    places = ["--model", model, "--api", api, "--server", server]
    numbers = [f"--steps={STEPS}", "--learning-rate=20", "--checkpoint-every=3"]
    return {
        "api": [ENTRY, "run-api", "--port", api_port],
        "serve": [*serve, *(f"--{name}={value}" for name, value in changes.items())],
        "trainer": ["-c", WITHOUT_TORCH, *places, *numbers],
    }


class Programs:
    """Starts them, each by itself, and kills those that are left."""

    def __init__(self, model, running):
        self._model = model
        self._running = running
        server = ChildProgram("tests.examples.policies", str(model))
        running.callback(server.stop)
        with socket.create_server(("127.0.0.1", 0)) as unused:
            port = unused.getsockname()[1]
        self._lines = command_lines(model, port, server.wait_for_url())

    def start(self, name):
        """Start a program whose words go to a file of its name."""
        log = self._running.enter_context(self._model.with_name(name).open("a"))
        words = [sys.executable, *map(str, self._lines[name])]
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=ROOT)
        self._running.callback(process.wait)
        self._running.callback(process.kill)
        return process

    def said(self, name):
        return self._model.with_name(name).read_text()

    def until_step(self, step, trainer):
        """Wait until it has taken a step; return how many it has."""
        deadline = time.monotonic() + GUARD_S
        while len(history_of(self._model)) < step:
            assert trainer.poll() is None, self.said("trainer")
            assert time.monotonic() < deadline, self.said("serve")
            time.sleep(0.01)
        return len(history_of(self._model))


@pytest.mark.processes
@pytest.mark.slow
def test_four_programs_started_in_any_order_train_and_go_on_after_each_end(model):
    with contextlib.ExitStack() as running:
        programs = Programs(model, running)
        trainer = programs.start("trainer")
        serve = programs.start("serve")
        api = programs.start("api")

        killed_at = programs.until_step(8, trainer)
        trainer.kill()
        trainer = programs.start("trainer")
        programs.until_step(killed_at + 2, trainer)

        serve.kill()
        serve.wait()
        programs.start("serve")
        killed_at = len(history_of(model))
        programs.until_step(killed_at + 4, trainer)

        trainer.send_signal(signal.SIGINT)
        assert trainer.wait(GUARD_S) == 128 + signal.SIGINT
        assert "ended; the same command goes on" in programs.said("trainer")
        done = len(history_of(model))
        trainer = programs.start("trainer")

        programs.until_step(done + 2, trainer)
        api.kill()
        api.wait()
        programs.start("api")
        assert trainer.wait(GUARD_S) == 0, programs.said("trainer")
        assert f"going on after step {done}" in programs.said("trainer")
    rows = history_of(model)
    assert [row["number"] for row in rows] == list(range(1, STEPS + 1))
    rewards = [row["reward"] for row in rows]
    assert sum(rewards[-5:]) > sum(rewards[:5]) + 0.5
    # What the server reads is what was trained.
    (checkpoint,) = model.with_name("policy-checkpoints").glob("step-*")
    assert checkpoint.name == f"step-{STEPS:06d}"
    told = [
        load_policy(folder).log_probabilities([0]) for folder in (model, checkpoint)
    ]
    assert told[0] == told[1] != AnswerPolicy().log_probabilities([0])


def test_a_second_trainer_of_a_model_is_refused(model, capsys):
    argv = ["--model", str(model), "--server", "http://127.0.0.1:9"]
    with train.taken(model):
        assert train.main(argv, load_policy) == train.REFUSED
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"error: another trainer has {model}; end it"
