"""A user's own tasks in a run: found, sampled, scored, continued and measured."""

import subprocess
import sys
from pathlib import Path

import pytest

from rg_env.line_file import read_groups
from rg_env.run.checkpoints import BadCheckpointError
from rg_env.settings.program_settings import SIMULATED
from tests.support.parts import GUARD_S, REPO_ROOT, options_of, run_main
from tests.support.runs import next_items, questions, with_env

pytestmark = pytest.mark.processes

FILE = str(REPO_ROOT / "tests" / "support" / "own_tasks.py")

PROGRAM = f"""\
import sys
sys.path.insert(0, {str(REPO_ROOT)!r})
from dataclasses import dataclass
from reasoning_gym.factory import ProceduralDataset, register_dataset
from reasoning_gym_environment import ReasoningGymEnv

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
        return {{"question": f"Three times {{number}}?", "answer": answer}}

register_dataset("triple", TripleDataset, TripleConfig)

class MyEnv(ReasoningGymEnv):
    name = "mine"

if __name__ == "__main__":
    MyEnv.cli()
"""


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """Two files of one name with the same tasks; the second has another line."""
    files = []
    for more in ("", "# changed\n"):
        path = tmp_path_factory.mktemp("version") / "my_tasks.py"
        path.write_text(f"{Path(FILE).read_text()}{more}")
        files.append(str(path))
    return files


def test_a_program_has_its_tasks_written_by_process(tmp_path):
    (tmp_path / "my_env.py").write_text(PROGRAM)
    rows = tmp_path / "rows.jsonl"
    argv = options_of(
        SIMULATED, tasks="triple", total_steps=2, data_path_to_save_groups=rows
    )
    done = subprocess.run(
        [sys.executable, "my_env.py", "process", *argv],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=GUARD_S,
    )
    assert done.returncode == 0, done.stderr
    found = list(read_groups(rows))
    assert [row["task"] for row in found] == ["triple"] * 2
    for row in found:
        number = int(row["question"].split()[2].rstrip("?"))
        assert row["gold_answer"] == str(3 * number)
        assert set(row["outcomes"]).isdisjoint({"scorer_error", "timeout"})
    assert " with my_env " in done.stderr


def test_a_checkpoint_of_a_changed_module_is_refused(versions, tmp_path):
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

    first, changed = (
        {"task_modules": [file], "tasks": ["double", "gcd"]} for file in versions
    )
    then = with_env(save, **first)
    assert with_env(load, **first) == then
    with pytest.raises(
        BadCheckpointError, match="is of a run with another task_modules"
    ):
        with_env(load, **changed)


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
