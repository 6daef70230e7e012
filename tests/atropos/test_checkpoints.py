"""Checkpoints and the ledger: whole or not at all, of this run or refused."""

import json
import resource
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from rg_env.atropos.checkpoints import BadCheckpointError, Checkpoints, load, newest
from tests.support.parts import REPO_ROOT


class Part:
    def __init__(self, value):
        self.value = value

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = int(state["value"])


class OfPart(Checkpoints):
    """The checkpoints of an environment whose state is one value."""

    def __init__(self, folder, name="rg"):
        config = SimpleNamespace(wandb_name=name, num_shards=1, stream_settings={})
        env = SimpleNamespace(checkpoint_dir=str(folder), config=config, _items=None)
        super().__init__(env, None, None)
        self.part = Part(1)
        env.curr_step, env.save_checkpoint = 4, lambda step: self.write(step, {})

    def parts(self):
        return {"a": self.part}


@pytest.fixture
def saves(tmp_path):
    saves = OfPart(tmp_path)
    yield saves
    saves.release()


def value_of(saves):
    return json.loads((saves.folder / "step-4.json").read_bytes())["a"]["value"]


# -- a write ---------------------------------------------------------------------------

KILLED_AT_EVERY_LINE = """
import json, os, signal, sys
from tests.atropos.test_checkpoints import OfPart

saves = OfPart(sys.argv[1])
saves.part.value = "x" * 10**5
target = saves.folder / "step-4.json"
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
        saves.write(4, {})
        sys.settrace(None)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    value = json.loads(target.read_bytes())["a"]["value"]
    print(os.WTERMSIG(status), "old" if value == 1 else "new", flush=True)
    if not os.WIFSIGNALED(status):
        break
"""


@pytest.mark.processes
def test_a_kill_at_any_line_of_the_write_leaves_the_old_checkpoint_or_the_new(
    saves, tmp_path
):
    saves.write(4, {})
    saves.release()
    child = subprocess.run(
        [sys.executable, "-c", KILLED_AT_EVERY_LINE, str(tmp_path)],
        cwd=REPO_ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    seen = child.stdout.splitlines()
    assert {"9 old", "9 new"} <= set(seen) <= {"9 old", "9 new", "0 new"}
    assert seen[-1] == "0 new"
    assert len(seen) > 15


def test_a_full_disk_keeps_the_old_checkpoint_and_the_next_leaves_nothing_else(saves):
    saves.write(4, {})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            saves.write(4, {"filler": "x" * 5000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert value_of(saves) == 1
    saves.part.value = 2
    saves.write(4, {})
    assert value_of(saves) == 2
    assert {path.name for path in saves.folder.iterdir()} == {
        "step-4.json",
        "ledger.json",
    }


# -- which checkpoint is continued -----------------------------------------------------


def test_the_newest_step_is_found_by_number_and_not_by_name(saves):
    for step in (9, 10, 30):
        saves.write(step, {})
    (saves.folder / "step-x.json").write_text("")
    assert newest(saves.folder, 29) == saves.folder / "step-10.json"
    assert newest(saves.folder, 8) is None


def test_a_folder_that_a_living_instance_holds_is_left_to_it(saves, tmp_path):
    second = OfPart(tmp_path)
    assert (saves.folder.name, second.folder.name) == ("rg", "rg.1")
    saves.release()
    assert OfPart(tmp_path).folder == saves.folder
    second.release()


# -- what it holds ---------------------------------------------------------------------

STATE = {"version": 2, "settings": {"seed": 1}, "a": {"value": 5}, "b": {"value": 6}}


def loaded(folder, **changes):
    """Load a checkpoint into two parts; return their values."""
    path = folder / "step-4.json"
    path.write_text(json.dumps(STATE | changes))
    parts = {"a": Part(0), "b": Part(0)}
    try:
        load(path, parts, STATE["settings"])
    except BadCheckpointError as error:
        assert [part.value for part in parts.values()] == [0, 0]
        return str(error)
    return [part.value for part in parts.values()]


def test_a_state_goes_through_a_file(tmp_path):
    assert loaded(tmp_path) == [5, 6]


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
def test_what_cannot_be_loaded_leaves_every_part_as_it_was(tmp_path, changes, reason):
    assert reason in loaded(tmp_path, **changes)


# -- the ledger ------------------------------------------------------------------------

KEEPS_COUNTING = """
import sys
from rg_env.rollouts.group import Ending
from tests.atropos.test_checkpoints import OfPart
saves = OfPart(sys.argv[1])
saves.begin()
while True:
    saves.ledger.query(4)
    saves.ledger.settle(Ending.SENT, 4)
    print(saves.ledger.queried, flush=True)
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


def test_a_shorter_ledger_leaves_nothing_of_a_longer_one(saves):
    saves.begin()
    for queried in (10**9, 1):
        saves.ledger.load_state_dict({"queried": queried, "outcomes": {}})
    ledger = json.loads((saves.folder / "ledger.json").read_bytes())
    assert ledger == {"queried": 1, "outcomes": {}}
