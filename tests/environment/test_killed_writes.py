"""A process that is killed while it writes a checkpoint, at every line of the write."""

import json
import os
import resource
import signal
import subprocess
import sys

import pytest

from rg_env.atropos import checkpoint_files
from rg_env.atropos.checkpoints import CheckpointFolder, left_ledger
from tests.support.parts import REPO_ROOT

KILLED_AT_EVERY_LINE = """
import os, signal, sys
from pathlib import Path
from rg_env.atropos import checkpoint_files

target, state = Path(sys.argv[1]), {"version": "new", "filler": "x" * 10**5}
old = target.read_bytes()
for last_line in range(1, 10**6):
    target.write_bytes(old)
    child = os.fork()
    if not child:
        lines = 0
        def trace(frame, event, argument):
            global lines
            file = frame.f_code.co_filename
            if not file.endswith(("checkpoint_files.py", "pathlib.py")):
                return None
            lines += event == "line"
            if lines == last_line:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace
        sys.settrace(trace)
        checkpoint_files.write(target, state)
        sys.settrace(None)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.WTERMSIG(status), checkpoint_files.read(target)["version"], flush=True)
    if not os.WIFSIGNALED(status):
        break
"""


@pytest.mark.processes
def test_a_kill_at_any_line_of_the_write_leaves_the_old_checkpoint_or_the_new(tmp_path):
    target = tmp_path / "step-4.json"
    checkpoint_files.write(target, {"version": "old"})
    child = subprocess.run(
        [sys.executable, "-c", KILLED_AT_EVERY_LINE, str(target)],
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


def test_what_a_killed_write_left_is_gone_after_the_next(tmp_path):
    (tmp_path / ".part").write_text("torn")
    checkpoint_files.write(tmp_path / "step-4.json", {})
    assert [path.name for path in tmp_path.iterdir()] == ["step-4.json"]


def test_a_full_disk_keeps_the_old_checkpoint_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "step-4.json"
    checkpoint_files.write(target, {"version": "old"})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            checkpoint_files.write(target, {"filler": "x" * 5000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert checkpoint_files.read(target) == {"version": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["step-4.json"]


# -- which checkpoint is continued -----------------------------------------------------


def test_only_what_a_living_instance_does_not_write_is_continued_by_another(tmp_path):
    first = CheckpointFolder(str(tmp_path), "rg_0")
    path = first.path(4)
    checkpoint_files.write(path, {"version": 1})
    assert CheckpointFolder(str(tmp_path), "rg_1").left(4) == []
    assert CheckpointFolder(str(tmp_path), "rg_0").path(4).parent != path.parent
    first.release()
    assert CheckpointFolder(str(tmp_path), "rg_1").left(4) == [path]


def test_of_several_previous_runs_the_one_written_last_is_continued(tmp_path):
    runs = [CheckpointFolder(str(tmp_path), f"rg_{i}") for i in range(3)]
    for i, run in enumerate(runs):
        checkpoint_files.write(run.path(4), {})
        os.utime(run.path(4), ns=(0, [1, 3, 2][i]))
        run.release()
    assert CheckpointFolder(str(tmp_path), "rg_0").left(9)[0] == runs[1].path(4)


# -- the ledger ------------------------------------------------------------------------

KEEPS_COUNTING = """
import sys
from rg_env.atropos.checkpoints import CheckpointFolder
from rg_env.rollouts.group import Ending, Ledger
run = CheckpointFolder(sys.argv[1], "rg_0")
run.begin_ledger()
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
            said = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
    run = CheckpointFolder(str(tmp_path), "rg_0")
    ledger = left_ledger(run.path(4))
    assert ledger["queried"] >= said
    assert 0 <= ledger["queried"] - ledger["outcomes"]["sent"] <= 4


def test_a_shorter_ledger_leaves_nothing_of_a_longer_one(tmp_path):
    run = CheckpointFolder(str(tmp_path), "rg_0")
    run.begin_ledger()
    run.keep({"queried": 10**9, "outcomes": {}})
    run.keep({"queried": 1, "outcomes": {}})
    assert left_ledger(run.path(0)) == {"queried": 1, "outcomes": {}}


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00" * 50])
def test_a_ledger_that_is_none_is_not_used(tmp_path, text):
    run = CheckpointFolder(str(tmp_path), "rg_0")
    assert left_ledger(run.path(4)) is None
    run.path(0).parent.mkdir()
    run.path(0).with_name("ledger.json").write_text(text)
    assert left_ledger(run.path(4)) is None


def test_a_disk_that_refuses_checkpoints_and_ledger_ends_nothing(tmp_path, logged):
    (tmp_path / "file").write_text("")
    run = CheckpointFolder(str(tmp_path / "file"), "rg_0")
    run.begin_ledger()
    run.keep({"queried": 1})
    assert run.left(4) == []
    run.release()
    assert json.dumps(logged.text).count("checkpoints cannot be saved") == 1
