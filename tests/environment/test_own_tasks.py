"""A user's own tasks in a run: found, sampled, scored, continued and measured."""

import runpy
import sys

import pytest
from reasoning_gym import factory

from rg_env.line_file import read_groups
from rg_env.run.checkpoints import BadCheckpointError
from rg_env.settings.server_and_launch_settings import SIMULATED
from tests.support.parts import REPO_ROOT, options_of, ready_env

pytestmark = pytest.mark.processes

FILE = REPO_ROOT / "tests" / "support" / "own_tasks.py"

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


async def test_a_checkpoint_of_a_changed_module_is_refused(tmp_path):
    changed = tmp_path / FILE.name
    changed.write_text(f"{FILE.read_text()}# changed\n")
    tasks = ["double", "gcd"]
    async with ready_env(tasks=tasks, task_modules=[str(FILE)]) as env:
        env.checkpoint_dir = str(tmp_path)
        env.save_checkpoint(4)
    async with ready_env(tasks=tasks, task_modules=[str(changed)]) as env:
        env.checkpoint_dir = str(tmp_path)
        env.curr_step = 4
        with pytest.raises(BadCheckpointError, match="of a run with another task_mod"):
            env.load_checkpoint()
