"""Checkpoints and the ledger: whole or not at all, of this run or refused."""

import json
from types import SimpleNamespace

import pytest

from rg_env.run.checkpoints import BadCheckpointError, Checkpoints, find_newest, load
from tests.support.processes import files_end_at


class Part:
    def __init__(self, value):
        self.value = value

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = int(state["value"])


class OnePart(Checkpoints):
    """The checkpoints of an environment whose state is one value."""

    def __init__(self, folder):
        config = SimpleNamespace(wandb_name="rg", num_shards=1)
        env = SimpleNamespace(checkpoint_dir=str(folder), config=config)
        super().__init__(env, None, None)
        self.part = Part(1)
        env.curr_step = 4
        env.save_checkpoint = lambda step: self.write(step, {})

    def parts(self):
        return {"a": self.part}

    def _settings(self):
        return {}


@pytest.fixture
def checkpoints(tmp_path):
    checkpoints = OnePart(tmp_path)
    yield checkpoints
    checkpoints.release()


def saved_value(path):
    return json.loads(path.read_bytes())["a"]["value"]


# -- a write ---------------------------------------------------------------------------


def test_a_full_disk_keeps_the_old_checkpoint_and_the_next_leaves_nothing_else(
    checkpoints,
):
    path = checkpoints.write(4, {})
    with files_end_at(1000), pytest.raises(OSError, match="File too large"):
        checkpoints.write(4, {"filler": "x" * 5000})
    assert saved_value(path) == 1
    checkpoints.part.value = 2
    checkpoints.write(4, {})
    assert saved_value(path) == 2
    assert {*path.parent.iterdir()} == {path, path.with_name("ledger.json")}


# -- which checkpoint is continued -----------------------------------------------------


def test_the_newest_step_is_found_by_number_and_not_by_name(checkpoints):
    folder = checkpoints.hold_folder()
    for step in (9, 10, 30):
        checkpoints.write(step, {})
    (folder / "step-x.json").write_text("")
    assert find_newest(folder, 29) == folder / "step-10.json"
    assert find_newest(folder, 8) is None


def test_a_folder_that_a_living_instance_holds_is_left_to_it(checkpoints, tmp_path):
    first = checkpoints.hold_folder()
    second = OnePart(tmp_path)
    assert (first.name, second.hold_folder().name) == ("rg", "rg.1")
    checkpoints.release()
    assert OnePart(tmp_path).hold_folder() == first
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
        ({"b": {"value": "x"}}, "step-4.json: b: "),
        ({"b": {}}, "step-4.json: b: "),
        ({"settings": None}, "step-4.json: JSON: "),
        ({"version": 1}, "of a run with another version: 1, now 2"),
        ({"settings": {"seed": 2}}, "of a run with another seed: 2, now 1"),
    ],
)
def test_what_cannot_be_loaded_leaves_every_part_as_it_was(tmp_path, changes, reason):
    assert reason in loaded(tmp_path, **changes)


# -- the ledger ------------------------------------------------------------------------


def test_a_shorter_ledger_leaves_nothing_of_a_longer_one(checkpoints):
    checkpoints.begin()
    for queried in (10**9, 1):
        checkpoints.ledger.load_state_dict({"queried": queried, "outcomes": {}})
    ledger = json.loads((checkpoints.hold_folder() / "ledger.json").read_bytes())
    assert ledger == {"queried": 1, "outcomes": {}}
