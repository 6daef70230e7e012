"""Which checkpoints are of the model in a folder, and what is written there."""

import shutil

import numpy as np
import pytest
from safetensors.numpy import save_file

from examples.trainer.checkpoints import Checkpoints
from examples.trainer.model_folder import ModelFolder
from examples.trainer.policy import TrainingError
from examples.trainer.vllm_weights import put_in_place, save_beside

PARTS = ("model-1.safetensors", "model-2.safetensors")


class Weights:
    """Weights in two files, large enough that not all of them is sampled."""

    def __init__(self, value):
        self._value = value

    def save(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        for number, name in enumerate(PARTS):
            values = np.full(200_000, self._value + number, np.float32)
            save_file({"weights": values}, folder / name)


def make_model(folder, value=0.0, configuration="{}"):
    shutil.rmtree(folder, ignore_errors=True)
    Weights(value).save(folder)
    (folder / "config.json").write_text(configuration)


class Training:
    """Begins with the model in a folder, or goes on."""

    def __init__(self, place):
        self.path, self._kept = place / "policy", place / "kept"
        self._kept.mkdir(exist_ok=True)
        self._checkpoints = Checkpoints(self._kept)
        self._model = ModelFolder(self.path, self._checkpoints, self._kept)

    def write(self, value, only=PARTS):
        """Write weights; with fewer names it is killed in the midst."""
        new = save_beside(Weights(value).save, self.path)
        self._model.claim(new)
        for name in set(PARTS) - set(only):
            (new / name).unlink()
        put_in_place(new, self.path)

    def keep(self, step):
        self._checkpoints.save(Weights(step), step)


@pytest.fixture
def place(tmp_path):
    """Return the folder of a model that was trained for a step."""
    place = tmp_path / "place"
    make_model(place / "policy")
    training = Training(place)
    training.write(1.0)
    training.keep(1)
    return place


def test_a_training_goes_on_with_the_weights_that_it_has_written(place):
    Training(place).write(2.0)
    Training(place)


def test_a_training_goes_on_after_a_kill_in_the_midst_of_writing(place):
    Training(place).write(2.0, only=PARTS[:1])
    Training(place).write(2.0)


def test_a_training_goes_on_where_folder_and_checkpoints_were_copied(place, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(place, elsewhere, copy_function=shutil.copyfile)
    Training(elsewhere)


def copy_another(place, name):
    make_model(place / "another", value=5.0)
    shutil.copy(place / "another" / name, place / "policy" / name)


def change_a_part(place):
    file = place / "policy" / PARTS[0]
    written = file.read_bytes()
    file.write_bytes(written[:-50_000] + bytes(50_000))


SPOILT = {
    "other weights": lambda place: make_model(place / "policy", value=5.0),
    "another config": lambda place: make_model(place / "policy", configuration="{ }"),
    "another first file": lambda place: copy_another(place, PARTS[0]),
    "another second file": lambda place: copy_another(place, PARTS[1]),
    "a changed part": change_a_part,
    "no origin": lambda place: (place / "kept" / "origin.json").unlink(),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_training_does_not_go_on_with_weights_that_it_has_not_written(place, spoil):
    spoil(place)
    with pytest.raises(TrainingError, match="has checkpoints of another model than"):
        Training(place)


def test_a_training_does_not_go_on_with_checkpoints_of_another_one(place, tmp_path):
    other = tmp_path / "other"
    make_model(other / "policy", value=5.0)
    training = Training(other)
    training.keep(1)
    shutil.copytree(place / "kept", other / "kept", dirs_exist_ok=True)
    with pytest.raises(TrainingError, match="has checkpoints of another model than"):
        Training(other)


def test_a_model_that_is_put_there_while_it_trains_is_not_written_over(place):
    training = Training(place)
    make_model(place / "policy", value=5.0)
    before = (place / "policy" / PARTS[0]).read_bytes()
    with pytest.raises(TrainingError, match="holds another model now"):
        training.write(2.0)
    assert (place / "policy" / PARTS[0]).read_bytes() == before


def test_a_training_without_a_checkpoint_begins_with_what_is_there(tmp_path):
    make_model(tmp_path / "policy")
    Training(tmp_path).write(1.0)
    make_model(tmp_path / "policy", value=5.0)
    Training(tmp_path).keep(1)
    Training(tmp_path)


def test_a_folder_without_weights_is_refused(tmp_path):
    make_model(tmp_path / "policy")
    for name in PARTS:
        (tmp_path / "policy" / name).unlink()
    with pytest.raises(TrainingError, match=r"holds no weights; prepare.py"):
        Training(tmp_path)
