"""Which modules the workers are told of, and what of a process they cannot import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rg_env.tasks import task_modules
from rg_env.tasks.task_modules import LOAD, checked, modules_of, preloads

ROOT = Path(__file__).resolve().parents[2]
GUARD_S = 120.0

SCRIPT = """\
import dataclasses, json, sys
sys.path.insert(0, {root!r})
from reasoning_gym.factory import ProceduralDataset, register_dataset
from rg_env.errors import SettingError
from rg_env.tasks.task_modules import registered_here

@dataclasses.dataclass
class Config:
    seed: int | None = None
    size: int = 1

class Dataset(ProceduralDataset):
    def __getitem__(self, idx):
        return {{}}

{body}
try:
    print(json.dumps(registered_here()))
except SettingError as error:
    print(error)
"""
REGISTER = "register_dataset('mine', Dataset, Config)"
IN_A_FUNCTION = f"""\
def begin():
    class Dataset(ProceduralDataset):
        pass
    {REGISTER}
begin()
"""


def said_by(body: str, *argv: str, **how: str) -> str:
    text = SCRIPT.format(root=str(ROOT), body=body)
    given = [text if word == "TEXT" else word for word in argv]
    if how:
        Path(how["file"]).write_text(text)
    done = subprocess.run(
        [sys.executable, *given],
        cwd=how.get("cwd"),
        capture_output=True,
        text=True,
        timeout=GUARD_S,
    )
    return done.stdout.strip() or done.stderr


def test_names_stay_and_paths_are_made_whole(tmp_path, monkeypatch):
    (tmp_path / "tasks.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert checked("package.tasks") == "package.tasks"
    assert checked("./tasks.py") == str(tmp_path.resolve() / "tasks.py")


@pytest.mark.parametrize("module", ["gone.py", "no name", "a..b", "tasks/double", "9"])
def test_what_is_no_module_and_no_file_is_refused(module):
    with pytest.raises(ValueError, match="is not"):
        checked(module)


def test_without_tasks_of_ones_own_workers_are_told_nothing():
    assert preloads() == ()


def test_what_workers_are_told_names_the_modules():
    (told,) = preloads(["package.tasks"])
    assert told.startswith(LOAD)
    assert modules_of(["other:preload", told]) == ["package.tasks"]


def test_a_process_without_the_library_has_registered_nothing(monkeypatch):
    monkeypatch.delitem(sys.modules, "reasoning_gym.factory", raising=False)
    assert task_modules.registered_here() == {}


@pytest.mark.processes
def test_a_program_has_its_classes_in_its_file(tmp_path):
    file = tmp_path / "my_env.py"
    found = json.loads(said_by(REGISTER, str(file), file=str(file)))
    places = [[str(file), "Dataset"], [str(file), "Config"], None]
    assert found == {"mine": places}


@pytest.mark.processes
def test_a_program_that_was_started_as_a_module_has_them_there(tmp_path):
    file, how = tmp_path / "my_env.py", ("-m", "my_env")
    found = json.loads(said_by(REGISTER, *how, file=str(file), cwd=str(tmp_path)))
    assert found["mine"][0] == ["my_env", "Dataset"]


@pytest.mark.processes
@pytest.mark.parametrize(
    ("body", "argv", "expected"),
    [
        (REGISTER, ("-c", "TEXT"), "is defined in no file"),
        (IN_A_FUNCTION, ("{file}",), "is defined inside a function"),
    ],
    ids=["no file", "a function"],
)
def test_a_class_that_no_worker_can_import_is_refused(body, argv, expected, tmp_path):
    file = str(tmp_path / "my_env.py")
    argv = [word.format(file=file) for word in argv]
    said = said_by(body, *argv, file=file)
    assert said.startswith("task 'mine': workers cannot import ")
    assert expected in said and "put it at the top of a module" in said
