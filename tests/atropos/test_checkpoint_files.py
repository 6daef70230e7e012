"""Checkpoint files: whole or not at all, of this run or refused."""

import pytest

from rg_env.atropos import checkpoint_files
from rg_env.atropos.checkpoint_files import BadCheckpointError


class Part:
    def __init__(self, value):
        self.value = value

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = int(state["value"])


SETTINGS = {"seed": 1}


def test_state_goes_through_a_file(tmp_path):
    target = checkpoint_files.path(str(tmp_path), "env", 3)
    state = checkpoint_files.collect({"a": Part(1), "b": Part(2)}, SETTINGS)
    checkpoint_files.write(target, state)
    a, b = Part(0), Part(0)
    checkpoint_files.restore({"a": a, "b": b}, SETTINGS, target)
    assert (a.value, b.value) == (1, 2)


@pytest.mark.parametrize("broken", [{}, {"value": "x"}, None, [1]])
def test_a_part_that_cannot_be_loaded_leaves_every_part_as_it_was(tmp_path, broken):
    target = checkpoint_files.path(str(tmp_path), "env", 3)
    state = checkpoint_files.collect({"a": Part(5)}, SETTINGS)
    checkpoint_files.write(target, {**state, "b": broken})
    a, b = Part(0), Part(0)
    with pytest.raises(BadCheckpointError, match=r"step-3\.json: b: "):
        checkpoint_files.restore({"a": a, "b": b}, SETTINGS, target)
    assert (a.value, b.value) == (0, 0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"settings": {"seed": 2}}, "its settings and hash differ"),
        ({"settings": None}, "does not say which settings"),
        ({"settings_hash": ""}, "its settings and hash differ"),
        ({"version": 1}, "has version 1, needed is 2"),
    ],
)
def test_a_file_that_was_changed_is_refused(tmp_path, changes, said):
    target = checkpoint_files.path(str(tmp_path), "env", 3)
    state = checkpoint_files.collect({"a": Part(5)}, SETTINGS)
    checkpoint_files.write(target, {**state, **changes})
    with pytest.raises(BadCheckpointError, match=said):
        checkpoint_files.restore({"a": Part(0)}, SETTINGS, target)


def test_a_file_of_other_settings_is_refused_with_what_differs(tmp_path):
    target = checkpoint_files.path(str(tmp_path), "env", 3)
    checkpoint_files.write(target, checkpoint_files.collect({"a": Part(5)}, SETTINGS))
    with pytest.raises(BadCheckpointError, match="another seed: 1, now 2"):
        checkpoint_files.restore({"a": Part(0)}, {"seed": 2}, target)


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    target = checkpoint_files.path(str(tmp_path), "env", 3)
    checkpoint_files.write(target, {"version": 1})
    with pytest.raises(TypeError):
        checkpoint_files.write(target, {"version": object()})
    assert checkpoint_files.read(target) == {"version": 1}


def test_the_newest_step_is_found_by_number_and_not_by_name(tmp_path):
    for step in (9, 10, 30):
        checkpoint_files.write(checkpoint_files.path(str(tmp_path), "env", step), {})
    (tmp_path / "env_checkpoints" / "env" / "step-x.json").write_text("")
    found = checkpoint_files.newest(str(tmp_path), "env", 29)
    assert found is not None and found.name == "step-10.json"
    assert checkpoint_files.newest(str(tmp_path), "env", 8) is None
