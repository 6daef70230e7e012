"""Checkpoints and the ledger: whole or not at all, of this run or refused."""

import json
import os
import resource
import signal
import subprocess
import sys

import pytest

from rg_env.atropos.checkpoints import (
    BadCheckpointError,
    CheckpointFolder,
    load,
    newest,
)
from tests.support.parts import REPO_ROOT


@pytest.fixture
def folder(tmp_path):
    folder = CheckpointFolder(str(tmp_path), "rg_0")
    yield folder
    folder.release()


def read(folder, step=4):
    return json.loads((folder.path / f"step-{step}.json").read_bytes())


# -- a write ---------------------------------------------------------------------------

KILLED_AT_EVERY_LINE = """
import json, os, signal, sys
from rg_env.atropos.checkpoints import CheckpointFolder

folder = CheckpointFolder(sys.argv[1], "rg_0")
target = folder.path / "step-4.json"
state = {"version": "new", "filler": "x" * 10**5}
old = target.read_bytes()
for last_line in range(1, 10**6):
    target.write_bytes(old)
    child = os.fork()
    if not child:
        lines = 0
        def trace(frame, event, argument):
            global lines
            file = frame.f_code.co_filename
            if not file.endswith(("checkpoints.py", "pathlib.py")):
                return None
            lines += event == "line"
            if lines == last_line:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace
        sys.settrace(trace)
        folder.write(4, state)
        sys.settrace(None)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    version = json.loads(target.read_bytes())["version"]
    print(os.WTERMSIG(status), version, flush=True)
    if not os.WIFSIGNALED(status):
        break
"""


@pytest.mark.processes
def test_a_kill_at_any_line_of_the_write_leaves_the_old_checkpoint_or_the_new(
    folder, tmp_path
):
    folder.write(4, {"version": "old"})
    folder.release()
    child = subprocess.run(
        [sys.executable, "-c", KILLED_AT_EVERY_LINE, str(tmp_path)],
        cwd=REPO_ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    seen = child.stdout.splitlines()
    assert {"9 old", "9 new"} <= set(seen)
    assert set(seen) <= {"9 old", "9 new", "0 new"}
    assert seen[-1] == "0 new"
    assert len(seen) > 15


def test_a_full_disk_keeps_the_old_checkpoint_and_the_next_leaves_nothing_else(folder):
    folder.write(4, {"version": "old"})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            folder.write(4, {"filler": "x" * 5000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert read(folder) == {"version": "old"}
    folder.write(4, {"version": "new"})
    assert [path.name for path in folder.path.iterdir()] == ["step-4.json"]


# -- which checkpoint is continued -----------------------------------------------------


def test_the_newest_step_is_found_by_number_and_not_by_name(folder):
    for step in (9, 10, 30):
        folder.write(step, {})
    (folder.path / "step-x.json").write_text("")
    assert newest(folder.path, 29) == folder.path / "step-10.json"
    assert newest(folder.path, 8) is None


def test_only_what_a_living_instance_does_not_write_is_continued_by_another(
    folder, tmp_path
):
    folder.write(4, {})
    assert CheckpointFolder(str(tmp_path), "rg_1").left(4) == []
    assert CheckpointFolder(str(tmp_path), "rg_0").path != folder.path
    folder.release()
    assert CheckpointFolder(str(tmp_path), "rg_1").left(4) == [
        folder.path / "step-4.json"
    ]


def test_of_several_previous_runs_the_one_written_last_is_continued(tmp_path):
    runs = [CheckpointFolder(str(tmp_path), f"rg_{i}") for i in range(3)]
    for i, run in enumerate(runs):
        run.write(4, {})
        os.utime(run.path / "step-4.json", ns=(0, [1, 3, 2][i]))
        run.release()
    first = CheckpointFolder(str(tmp_path), "rg_0").left(9)[0]
    assert first.parent == runs[1].path


# -- what it holds ---------------------------------------------------------------------


class Part:
    def __init__(self, value):
        self.value = value

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = int(state["value"])


STATE = {"version": 2, "settings": {"seed": 1}, "a": {"value": 5}, "b": {"value": 6}}


def loaded(folder, **changes):
    """Load a checkpoint into two parts; return their values."""
    folder.write(4, STATE | changes)
    parts = {"a": Part(0), "b": Part(0)}
    try:
        load(folder.path / "step-4.json", parts, STATE["settings"])
    except BadCheckpointError as error:
        assert [part.value for part in parts.values()] == [0, 0]
        return str(error)
    return [part.value for part in parts.values()]


def test_a_state_goes_through_a_file(folder):
    assert loaded(folder) == [5, 6]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"b": {}}, "step-4.json: b: "),
        ({"b": {"value": "x"}}, "step-4.json: b: "),
        ({"b": None}, "step-4.json: b: "),
        ({"settings": None}, "step-4.json: JSON: "),
        ({"version": 1}, "has version 1, needed is 2"),
        ({"settings": {"seed": 2}}, "of a run with another seed: 2, now 1"),
    ],
)
def test_what_cannot_be_loaded_leaves_every_part_as_it_was(folder, changes, reason):
    assert reason in loaded(folder, **changes)


# -- the ledger ------------------------------------------------------------------------

KEEPS_COUNTING = """
import sys
from rg_env.atropos.checkpoints import CheckpointFolder
from rg_env.rollouts.group import Ending, Ledger
run = CheckpointFolder(sys.argv[1], "rg_0")
run.has_ledger = True
ledger = Ledger(run.keep)
while True:
    ledger.query(4)
    ledger.settle(Ending.SENT, 4)
    print(ledger.queried, flush=True)
"""


@pytest.mark.processes
def test_a_kill_leaves_a_ledger_of_all_that_was_counted(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", KEEPS_COUNTING, str(tmp_path)],
        cwd=REPO_ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        for _ in range(1000):
            counted = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
    (path,) = tmp_path.rglob("ledger.json")
    ledger = json.loads(path.read_bytes())
    assert ledger["queried"] >= counted
    assert 0 <= ledger["queried"] - ledger["outcomes"]["sent"] <= 4


def test_a_shorter_ledger_leaves_nothing_of_a_longer_one(folder):
    folder.has_ledger = True
    folder.keep({"queried": 10**9})
    folder.keep({"queried": 1})
    assert json.loads((folder.path / "ledger.json").read_bytes()) == {"queried": 1}


def test_a_disk_that_refuses_checkpoints_and_ledger_ends_nothing(tmp_path, logged):
    (tmp_path / "file").write_text("")
    run = CheckpointFolder(str(tmp_path / "file"), "rg_0")
    run.has_ledger = True
    run.keep({"queried": 1})
    assert run.left(4) == []
    run.release()
    assert logged.text.count("checkpoints cannot be saved") == 1
