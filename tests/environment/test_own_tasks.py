"""A user's own tasks in a run: found, sampled, scored, continued and measured."""

import runpy
import sys
from pathlib import Path

import pytest
from reasoning_gym import factory

from rg_env.line_file import read_groups
from rg_env.run.checkpoints import BadCheckpointError
from rg_env.settings.program_settings import SIMULATED
from tests.support.parts import REPO_ROOT, options_of, run_main
from tests.support.runs import next_items, questions, with_env

pytestmark = pytest.mark.processes

FILE = str(REPO_ROOT / "tests" / "support" / "own_tasks.py")

PROGRAM = """\
from dataclasses import dataclass
from reasoning_gym.factory import ProceduralDataset, register_dataset

@dataclass
class TripleConfig:
    seed: int | None = None
    size: int = 500

class TripleDataset(ProceduralDataset):
    def __init__(self, config):
        super().__init__(config=config, seed=config.seed, size=config.size)

    def __getitem__(self, idx):
        number = self.seed + idx
        answer = str(3 * number)
        return {"question": f"Three times {number}?", "answer": answer}

register_dataset("triple", TripleDataset, TripleConfig)

if __name__ == "__main__":
    from reasoning_gym_environment import ReasoningGymEnv

    class MyEnv(ReasoningGymEnv):
        name = "mine"

    MyEnv.cli()
"""


def test_a_program_has_its_tasks_written_by_process(tmp_path, monkeypatch, logged):
    (tmp_path / "my_env.py").write_text(PROGRAM)
    rows = tmp_path / "rows.jsonl"
    argv = options_of(
        SIMULATED, tasks="triple", total_steps=2, data_path_to_save_groups=rows
    )
    monkeypatch.setattr(factory, "DATASETS", dict(factory.DATASETS))
    monkeypatch.setattr(sys, "argv", ["my_env.py", "process", *argv])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(str(tmp_path / "my_env.py"), run_name="__main__")
    found = list(read_groups(rows))
    assert [row["task"] for row in found] == ["triple"] * 2
    for row in found:
        number = int(row["question"].split()[2].rstrip("?"))
        assert row["gold_answer"] == str(3 * number)
        assert set(row["outcomes"]).isdisjoint({"scorer_error", "timeout"})
    assert " with my_env " in logged.text


def test_a_checkpoint_of_a_changed_module_is_refused(tmp_path):
    changed = tmp_path / Path(FILE).name
    changed.write_text(f"{Path(FILE).read_text()}# changed\n")

    def place(env):
        env.checkpoint_dir, env.curr_step = str(tmp_path), 4

    async def save(env):
        place(env)
        await next_items(env, 2)
        env.save_checkpoint(4)
        return questions(await next_items(env, 3))

    async def load(env):
        place(env)
        env.load_checkpoint()
        return questions(await next_items(env, 3))

    given = {"tasks": ["double", "gcd"], "task_modules": [FILE]}
    then = with_env(save, **given)
    assert with_env(load, **given) == then
    with pytest.raises(
        BadCheckpointError, match="is of a run with another task_modules"
    ):
        with_env(load, **given | {"task_modules": [str(changed)]})


LEFT_OUT = {
    "raises": "OwnTaskError: ZeroDivisionError: division by zero, at own_tasks.py:",
    "hangs": "not done after 0.5 s",
    "scorer_raises": "scores 0.00 (KeyError: 'no such thing', at own_tasks.py:",
    "pays_none": "returned None; expected a number from 0 to 1)",
    "pays_percent": "returned 85; expected a number from 0 to 1)",
}


def test_tasks_that_do_not_work_are_left_out_with_their_lines():
    async def left_out(env):
        await env._items.evaluation.finished()
        return env._items.evaluation.left_out

    found = with_env(
        left_out, task_modules=[FILE], tasks=[*LEFT_OUT, "gcd"], item_deadline_s=0.5
    )
    assert found.keys() == LEFT_OUT.keys()
    for task, reason in LEFT_OUT.items():
        assert reason in found[task]


# -- the commands that make no environment ---------------------------------------------


def test_a_bad_module_ends_a_command_with_one_sentence(tmp_path, capsys):
    path = tmp_path / "bad_tasks.py"
    path.write_text("import json\n\njson.nothing\n")
    assert run_main(["tasks", f"--task_modules={path}"]) == 2
    lines = capsys.readouterr().err.splitlines()
    (error,) = [line for line in lines if line.startswith("error")]
    assert "tasks of your own cannot be loaded: AttributeError" in error
    assert error.endswith("at bad_tasks.py:3")
