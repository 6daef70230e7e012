"""A user's own tasks in a run: found, sampled, scored, continued and measured."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from rg_env.atropos.checkpoints import BadCheckpointError
from rg_env.errors import SettingError
from rg_env.rollouts.json_encoding import read_groups
from tests.support.parts import (
    GUARD_S,
    REPO_ROOT,
    Simulated,
    build_env,
    options_of,
    ready_env,
    run_main,
)
from tests.support.runs import next_items, questions

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
def doubling():
    """A simulated server that knows the task `double` and gcd."""
    server = Simulated("--tasks=double,gcd", f"--task_modules={FILE}")
    yield server
    server.stop()


def with_env(work, **changes):
    async def run():
        given = {"task_modules": [FILE], "tasks": ["double", "gcd"]}
        async with ready_env(**(given | changes)) as env:
            return await work(env)

    return asyncio.run(run())


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """Two files of one name with the same tasks; the second has another line."""
    files = []
    for more in ("", "# changed\n"):
        path = tmp_path_factory.mktemp("version") / "my_tasks.py"
        path.write_text(f"{Path(FILE).read_text()}{more}")
        files.append(str(path))
    return files


def test_a_program_has_its_tasks_written_by_process(simulated, tmp_path):
    (tmp_path / "my_env.py").write_text(PROGRAM)
    rows = tmp_path / "rows.jsonl"
    argv = options_of(
        simulated.url, tasks="triple", total_steps=2, data_path_to_save_groups=rows
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
    assert "tasks of your own, from my_env: triple" in done.stderr


def test_rows_have_own_tasks_and_a_changed_module_begins_another_file(
    doubling, versions, tmp_path, logged
):
    rows = tmp_path / "rows.jsonl"

    def process(steps, module):
        argv = options_of(
            doubling.url,
            task_modules=module,
            tasks="double,gcd",
            total_steps=steps,
            data_path_to_save_groups=rows,
        )
        assert run_main(["process", *argv]) == 0

    first, changed = versions
    process(7, first)
    process(8, first)
    assert f"continuing {rows}: rows written 7, wanted 8" in logged.text
    found = list(read_groups(rows))
    assert {row["task"] for row in found} == {"double", "gcd"}
    scores = [s for r in found if r["task"] == "double" for s in r["task_scores"]]
    assert max(scores) == 1.0
    process(2, changed)
    assert f"{rows} was made with another version of my_tasks" in logged.text
    assert rows.read_bytes().count(b"\n") == 8
    assert (tmp_path / "rows_1.jsonl").read_bytes().count(b"\n") == 2


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

    first, changed = versions
    then = with_env(save, task_modules=[first])
    assert with_env(load, task_modules=[first]) == then
    with pytest.raises(
        BadCheckpointError, match="is of a run with another task_modules"
    ):
        with_env(load, task_modules=[changed])


def test_a_curriculum_of_which_no_level_can_be_used_stops_the_start():
    with pytest.raises(SettingError) as caught:
        with_env(lambda env: None, tasks=["broken_levels"])
    said = str(caught.value)
    assert said.startswith("task 'broken_levels' of your own: its curriculum fails (")
    assert "level 0: its config refuses it: KeyError: 'nothing'" in said


def test_levels_parameters_and_mixtures_are_of_the_registered_config(tmp_path):
    async def handles(env):
        return [handle for _, _, handle in await next_items(env, 12)]

    found = with_env(handles, tasks=["double"], complexity_mode=0.5)
    assert {(handle.level, handle.params["highest"]) for handle in found} == {(0.5, 99)}

    params = {"double": {"highest": 42}}
    found = with_env(handles, tasks=["double"], task_params=params)
    assert all(handle.params == {"highest": 42} for handle in found)

    parts = [{"name": "double", "config": {"highest": 5}}, {"name": "gcd"}]
    path = tmp_path / "mixture.yaml"
    path.write_text(json.dumps({"datasets": parts}))
    found = with_env(handles, tasks=None, mixture=str(path))
    assert {handle.task for handle in found} == {"double", "gcd"}

    params["double"]["highest"] = 10_000
    refused = "env.task_params.double: its config refuses .* must be below 10000"
    with pytest.raises(SettingError, match=refused):
        with_env(handles, tasks=["double"], task_params=params)


LEFT_OUT = {
    "raises": "OwnTaskError: ZeroDivisionError: division by zero, at own_tasks.py:",
    "hangs": "not done after 0.5 s",
    "scorer_raises": "scores 0.00 (KeyError: 'no such thing', at own_tasks.py:",
    "pays_none": "returned None; expected a number from 0 to 1)",
    "pays_nan": "returned nan; expected a number from 0 to 1)",
    "pays_text": "returned '1.0'; expected a number from 0 to 1)",
    "pays_percent": "returned 85; expected a number from 0 to 1)",
    "notation_raises": "its RULES fail on its reference answer (KeyError: 'no such key'"
    ", at own_tasks.py:",
    "notation_of_another": "(the notation makes it '",
    "guard_raises": "(IndexError: string index out of range, at own_tasks.py:",
    "guard_says_false": "(the guard rejects it: False)",
}


def test_tasks_that_do_not_work_are_left_out_with_their_lines():
    async def left_out(env):
        await env._items.evaluation.finished()
        return env._items.left_out

    found = with_env(left_out, tasks=[*LEFT_OUT, "gcd"], item_deadline_s=0.5)
    assert found.keys() == LEFT_OUT.keys()
    for task, reason in LEFT_OUT.items():
        assert reason in found[task]


def test_a_handle_scores_its_answers_also_where_it_was_sent_to():
    async def first(env):
        return (await next_items(env, 1))[0]

    _, entry, handle = with_env(first, tasks=["double"])
    handle = pickle.loads(pickle.dumps(handle))
    assert handle.score_answer(f"0{entry['answer']}", entry) == 1.0
    assert handle.score_answer("no", entry) == 0.0


def test_the_names_of_the_original_know_them(logged):
    env = build_env(task_modules=[FILE])
    names = env._get_task_names()
    assert {"double", "raises", "gcd"} <= set(names)

    class Package:
        @staticmethod
        def create_dataset(name, size, seed):
            return {"gcd": [{}]}[name]

    asked = ["gcd", "double", "raises", "gone"]
    assert env._validate_discovered_tasks(asked, Package) == ["gcd", "double"]
    assert "division by zero, at own_tasks.py:" in logged.text
    asyncio.run(env.close())


def test_an_evaluation_of_them_is_measured_and_rescored(
    doubling, versions, tmp_path, capsys
):
    results = tmp_path / "results"
    argv = options_of(
        doubling.url,
        task_modules=FILE,
        tasks="double,gcd",
        data_dir_to_save_evals=results,
    )
    assert run_main(["evaluate", *argv, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["by_task"]) == {"double", "gcd"}
    assert "own" in found["by_category"]

    rescore = ["rescore", str(results), "--json"]
    own = [f"--out={tmp_path / 'again.jsonl'}", "--task_modules"]
    first, changed = versions
    assert run_main([*rescore, *own, first]) == 0
    double = json.loads(capsys.readouterr().out)["tasks"]["double"]
    assert (double["completions"], double["changed"]) == (1, 0)
    run_main(rescore)
    double = json.loads(capsys.readouterr().out)["tasks"]["double"]
    assert (double["completions"], double["without_score"]) == (0, {"unmatched": 1})
    assert run_main([*rescore, *own, changed]) == 2
    assert "of reasoning-gym 0.1.25 with my_tasks " in capsys.readouterr().err


# -- the commands that make no environment ---------------------------------------------

OPTION = ("--task_modules", FILE)


def said_by(capsys, *argv, status=0):
    assert run_main([*argv]) == status
    captured = capsys.readouterr()
    return captured.out if status == 0 else captured.err


def test_tasks_lists_them_and_shows_one_in_full(capsys):
    whole = said_by(capsys, "tasks", "double", *OPTION)
    assert "category: own" in whole and "Twice a number." in whole
    assert "level 3: its config refuses it: AssertionError: highest must" in whole
    chosen = ("double", "raises", "gcd", "--category", "own", "--json")
    found = json.loads(said_by(capsys, "tasks", *chosen, *OPTION))
    assert {task["task"] for task in found["tasks"]} == {"double", "raises"}
    assert "unknown task 'double'" in said_by(capsys, "tasks", "double", status=2)


def test_show_scores_by_the_rules_of_the_module(capsys):
    how = ("double", "--no_fixes", "--seed", "1", "--json", *OPTION)
    made = json.loads(said_by(capsys, "show", *how))
    gold = made["gold_answer"]
    right = json.loads(said_by(capsys, "show", *how, "--answer", f"0{gold}"))
    assert json.dumps(right).count('"right"') == 1
    rejected = said_by(capsys, "show", *how[:-3], *OPTION, "--answer", "reject")
    assert "it says so" in rejected


FOUND = {
    "raises": "OwnTaskError: ZeroDivisionError: division by zero, at own_tasks.py:",
    "scorer_raises": LEFT_OUT["scorer_raises"],
    "notation_raises": LEFT_OUT["notation_raises"],
    "broken_levels": "OwnTaskError: level 0: its config refuses it: KeyError",
    "steep": "level 1: ZeroDivisionError: integer division or modulo",
}


def test_doctor_checks_them(capsys):
    said = said_by(capsys, "doctor", "double", "any_even", "--items", "2", *OPTION)
    assert "passed: 2 of 2 tasks" in said and "own_tasks " in said
    argv = ["doctor", *FOUND, "--items", "2", "--json", *OPTION]
    assert run_main(argv) == 1
    found = json.loads(capsys.readouterr().out)["tasks"]
    faults = {row["task"]: "; ".join(row["faults"]) for row in found}
    assert faults.keys() == FOUND.keys()
    for task, reason in FOUND.items():
        assert reason in faults[task]


@pytest.mark.parametrize("command", ["tasks", "process"])
def test_a_bad_module_ends_a_command_with_one_sentence(command, tmp_path, capsys):
    path = tmp_path / "bad_tasks.py"
    path.write_text("import json\n\njson.nothing\n")
    argv = [f"--task_modules={path}"]
    if command == "process":
        argv = options_of(
            task_modules=path, data_path_to_save_groups=tmp_path / "rows.jsonl"
        )
    assert run_main([command, *argv]) == 2
    lines = capsys.readouterr().err.splitlines()
    (error,) = [line for line in lines if line.startswith("error")]
    assert "tasks of your own cannot be loaded: AttributeError" in error
    assert error.endswith("at bad_tasks.py:3")
