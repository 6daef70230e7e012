"""The folder of the model that is trained, and which checkpoints are of that model.

A training is known by what it began with: the digests of the model's configuration and
of its weights. Its checkpoints have that in `origin.json`. The model's folder has it
too, with marks of the weights that the training has written there. Weights that it has
neither begun with nor written are another model's: it does not go on there, and writes
nothing over them.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from examples.trainer.checkpoints import Checkpoints, write_whole
from examples.trainer.policy import TrainingError

ORIGIN = "origin.json"
LOCK = "trainer.lock"
WEIGHTS = ("*.safetensors", "*.bin")

SAMPLES, SAMPLE_BYTES = 64, 4096
"""Of a file that a step has written: to read it whole would take seconds a step."""


@contextlib.contextmanager
def taken(*folders: Path) -> Iterator[None]:
    """Keep other trainers from some folders while the context lasts.

    Raises:
        TrainingError: Another one has one of them.
    """
    with contextlib.ExitStack() as open_:
        for folder in folders:
            lock = open_.enter_context((folder / LOCK).open("w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise TrainingError(f"another trainer has {folder}; end it") from error
        yield


class ModelFolder:
    """The folder of a model, for a training that begins in it or goes on.

    Args:
        path: Holds the model.
        checkpoints: Of the training, in their folder.
        kept: That folder.

    Raises:
        TrainingError: There are checkpoints, and they are of another model.
    """

    def __init__(self, path: Path, checkpoints: Checkpoints, kept: Path) -> None:
        self._path = path
        if checkpoints.step is None:
            self._origin = _origin_of(path)
            write_whole(kept / ORIGIN, json.dumps(self._origin))
        else:
            self._origin = _read(kept / ORIGIN)
            if not self._is_ours():
                raise TrainingError(
                    f"{kept} has checkpoints of another model than the one in {path};"
                    " give --checkpoints another folder to begin with this model, or"
                    " move the one that is there"
                )
        self._note([path])

    def claim(self, new: Path) -> None:
        """Note the weights that are to be written next, before they are.

        Args:
            new: Folder that holds them.

        Raises:
            TrainingError: Meanwhile the folder has got other weights than those of
                this training; they stay.
        """
        if not self._is_ours():
            raise TrainingError(
                f"{self._path} holds another model now, which is not written over;"
                " what this training has learnt is in its checkpoints"
            )
        self._note([self._path, new])

    def _is_ours(self) -> bool:
        noted = _read(self._path / ORIGIN)
        if noted.get("origin") != self._origin:
            return _origin_of(self._path) == self._origin
        marks = noted["written"]
        configuration = _digest(self._path / "config.json")
        return configuration == self._origin["configuration"] and all(
            _mark(file) in marks for file in _weights(self._path)
        )

    def _note(self, folders: list[Path]) -> None:
        """Note whose folder it is, and the weights that may lie in it from now on."""
        marks = {_mark(file) for folder in folders for file in _weights(folder)}
        note = {"origin": self._origin, "written": sorted(marks)}
        write_whole(self._path / ORIGIN, json.dumps(note))


def _read(path: Path) -> dict[str, Any]:
    """Read a JSON object; an empty one if the file is not there."""
    return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}


def _weights(folder: Path) -> list[Path]:
    return sorted(file for kind in WEIGHTS for file in folder.glob(kind))


def _origin_of(folder: Path) -> dict[str, str]:
    """Return what tells a model from others.

    Raises:
        TrainingError: There is none.
    """
    files = _weights(folder)
    if not files:
        raise TrainingError(f"{folder} holds no weights; prepare.py makes a model")
    digests = [_digest(file) for file in files]
    return {
        "configuration": _digest(folder / "config.json"),
        "weights": hashlib.sha256("".join(digests).encode()).hexdigest(),
    }


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(2**20):
            digest.update(part)
    return digest.hexdigest()


def _mark(path: Path) -> str:
    """Return a digest of a file's name, its length, and samples from all over it."""
    size = path.stat().st_size
    digest = hashlib.sha256(f"{path.name} {size}".encode())
    with path.open("rb") as file:
        for number in range(SAMPLES):
            file.seek(number * size // SAMPLES)
            digest.update(file.read(SAMPLE_BYTES))
    return digest.hexdigest()
