"""Modules of a user: which workers are told of, what of them is taken or refused."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from rg_env.errors import SettingError
from rg_env.items import worker_jobs
from rg_env.tasks import task_modules
from rg_env.tasks.task_modules import LOAD, checked, modules_of, preloads
from rg_env.workers.fork_server import ForkServer
from rg_env.workers.pool_errors import PreloadError
from rg_env.workers.worker_pool import WorkerPool

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


# -- loading them ----------------------------------------------------------------------

HEAD = """\
import dataclasses
from reasoning_gym.factory import DATASETS, ProceduralDataset, register_dataset
from rg_env.task_rules.rules import TaskRules

@dataclasses.dataclass
class Config:
    seed: int | None = None
    size: int = 1

class Dataset(ProceduralDataset):
    pass

"""
MINE = "register_dataset('mine', Dataset, Config)"

REFUSED = {
    "raises": ("1 / 0", "t.py cannot be imported (ZeroDivisionError: division by zero"),
    "exits": (
        "raise SystemExit(3)",
        "cannot be imported (SystemExit: 3, at t.py:13)",
    ),
    "interrupts": (
        "raise KeyboardInterrupt",
        "cannot be imported (KeyboardInterrupt, at t.py:",
    ),
    "no syntax": ("def f(:", "(SyntaxError: invalid syntax (t.py, line 13))"),
    "no package": ("import no_such", "No module named 'no_such', at t.py:13)"),
    "taken": (
        "register_dataset('gcd', Dataset, Config)",
        "(ValueError: Dataset 'gcd' is already registered, at t.py:13)",
    ),
    "nothing": ("", "t.py registers no task; reasoning_gym.factory.register_dataset"),
    "no defaults": (
        "Config.__dataclass_fields__['size'].default_factory = lambda: 1 / 0\n"
        "Config.__dataclass_fields__['size'].default = dataclasses.MISSING\n" + MINE,
        "task 'mine': its config cannot be read (ZeroDivisionError: division by zero,",
    ),
    "rules of others": (
        f"{MINE}\nRULES = TaskRules('gcd')",
        "RULES of t holds TaskRules(task='gcd'",
    ),
    "no rules": (f"{MINE}\nRULES = ['mine']", "RULES of t holds 'mine'; expected one"),
    "rules of another type": (
        f"{MINE}\nRULES = TaskRules('mine', notation='upper')",
        "(TypeError: notation is 'upper'; expected Notation | None, at t.py:14)",
    ),
    "rules twice": (
        f"{MINE}\nRULES = [TaskRules('mine', kept_signs='-'), TaskRules('mine')]",
        "expected one TaskRules for each of your tasks",
    ),
}

LOADING = """\
import json, os, sys
sys.path.insert(0, {root!r})
from rg_env.tasks import own_tasks, task_modules
from rg_env.tasks.library_import import load_factory
load_factory()
for case in json.loads(sys.stdin.read()):
    sys.stdout.flush()
    if os.fork() == 0:
        try:
            task_modules.load(case)
            print(json.dumps([own_tasks.names(), own_tasks.DIGESTS]))
        except task_modules.SettingError as error:
            print(json.dumps(str(error)))
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""


def loaded(*orders):
    """Return what came of each order, in a process of its own that has the library."""
    done = subprocess.run(
        [sys.executable, "-c", LOADING.format(root=str(ROOT))],
        input=json.dumps([json.dumps(order) for order in orders]),
        capture_output=True,
        text=True,
        timeout=GUARD_S,
    )
    assert not done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def written(folder, body, name="t.py"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(HEAD + body)
    return str(folder / name)


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refused")
    files = [written(folder / case, body) for case, (body, _) in REFUSED.items()]
    said = loaded(*([[file], {}] for file in files))
    return dict(zip(REFUSED, said, strict=True))


@pytest.mark.processes
@pytest.mark.parametrize("case", REFUSED)
def test_a_module_that_cannot_be_used_is_one_sentence(case, refusals):
    said = refusals[case]
    assert said.startswith("tasks of your own: ") and "\n" not in said
    assert REFUSED[case][1] in said


@pytest.mark.processes
def test_tasks_are_found_by_file_and_where_classes_are_registered(tmp_path):
    registered = written(tmp_path / "one", MINE)
    only_defined = written(tmp_path / "two", "")
    places = [(only_defined, "Dataset"), (only_defined, "Config"), None]
    same_place = [(registered, "Dataset"), (registered, "Config"), None]
    found = loaded(
        [[registered], {}],
        [[], {"yours": places}],
        [[registered], {"mine": same_place}],
        [[registered, only_defined], {"yours": places}],
    )
    names = [names for names, _ in found]
    assert names == [["mine"], ["yours"], ["mine"], ["mine", "yours"]]


@pytest.mark.processes
def test_a_class_that_a_program_defines_while_it_runs_is_named(tmp_path):
    file = written(tmp_path, "")
    (said,) = loaded([[], {"mine": [(file, "Gone"), (file, "Config"), None]}])
    assert "task 'mine': workers cannot import its classes (AttributeError: " in said
    assert "has no attribute 'Gone'" in said


@pytest.mark.processes
def test_a_digest_changes_with_the_source_alone(tmp_path):
    first, same = (written(tmp_path / name, MINE) for name in ("a", "b"))
    other = written(tmp_path / "c", f"{MINE}\n# another line")
    found = loaded(*([[file], {}] for file in (first, same, other)))
    assert [list(digests) for _, digests in found] == [["t"]] * 3
    one, two, three = (digests["t"] for _, digests in found)
    assert one == two != three


@pytest.mark.processes
def test_a_file_may_import_what_lies_beside_it(tmp_path):
    file = written(tmp_path, MINE.replace("'mine'", "NAME"))
    text = "from helper import NAME\n" + Path(file).read_text()
    Path(file).write_text(text)
    (tmp_path / "helper.py").write_text("NAME = 'of_helper'")
    (found,) = loaded([[file], {}])
    assert found[0] == ["of_helper"]


@pytest.mark.processes
def test_files_of_one_name_and_of_a_name_of_pythons_are_told_apart(tmp_path):
    one = written(tmp_path / "a", MINE, "json.py")
    two = written(tmp_path / "b", MINE.replace("mine", "yours"), "json.py")
    (found,) = loaded([[one, two], {}])
    assert found[0] == ["mine", "yours"]


# -- in workers ------------------------------------------------------------------------


@pytest.mark.processes
def test_a_package_is_read_with_its_data_while_workers_run(tmp_path, monkeypatch):
    body = """
    from pathlib import Path

    class Words(Dataset):
        def __init__(self, config):
            super().__init__(config=config, seed=config.seed, size=config.size)

        def __getitem__(self, idx):
            word = Path(__file__).with_name("words.txt").read_text()
            return {"question": word, "answer": word}

    register_dataset("words", Words, Config)
    """
    written(tmp_path / "my_words", textwrap.dedent(body), "__init__.py")
    (tmp_path / "my_words" / "words.txt").write_text("alone")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("rg_env.workers.worker_pool.ForkServer", ForkServer)
    preload = worker_jobs.preload_of(["my_words"])
    with contextlib.closing(WorkerPool(1, preload=preload)) as pool:
        entry = pool.call(worker_jobs.make_entry, "words", {}, 1, deadline_s=GUARD_S)
    assert entry["question"] == "alone"


@pytest.mark.processes
def test_a_module_that_stops_the_preloading_is_a_setting_that_is_wrong(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("rg_env.workers.worker_pool.ForkServer", ForkServer)
    preload = worker_jobs.preload_of([written(tmp_path, "1 / 0")])
    pool = WorkerPool(1, preload=preload)
    with contextlib.closing(pool), pytest.raises(PreloadError) as caught:
        pool.call(worker_jobs.describe_library, deadline_s=GUARD_S)
    assert caught.value.kind == SettingError.__name__
    assert caught.value.message.endswith("division by zero, at t.py:13)")
