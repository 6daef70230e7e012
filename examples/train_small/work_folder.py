"""Where everything of a training lies: the folder `--work`."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from examples.train_small.whole_files import write_whole
from rg_env.errors import RunFailed

LOCK, LOGS = "lock", "logs"

OF_FOLDER = (
    *("conversations", "held_out", "layers", "max_tokens", "model"),
    *("warm_seconds", "warm_target", "width"),
)
OF_RUN = ("group_size", "groups", "kl", "learning_rate", "steps")
"""Options that may not change in a folder, and in a run."""


class WorkFolder:
    """Names what is in it.

    Args:
        path: Made where it is not there.

    Attributes:
        path: Absolute.
        logs: What the processes say.
        tokenizer: Of all tasks that may be asked here.
        serving: What the inference server reads its weights from.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.logs = self.path / LOGS
        self.tokenizer = self.path / "tokenizer"
        self.serving = self.path / "serving"
        self.logs.mkdir(parents=True, exist_ok=True)

    def gold(self, task: str) -> Path:
        """Return the file of the conversations that a warm start shows."""
        return self.path / f"gold-{task}.jsonl"

    def start(self, seed: int, task: str) -> Path:
        """Return the folder of the weights after a warm start."""
        return self.path / f"seed-{seed}" / f"start-{task}"

    def run(self, seed: int, name: str) -> Path:
        """Return the folder of a run."""
        return self.path / f"seed-{seed}" / name

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Keep others from it while the context lasts.

        Raises:
            RunFailed: Another process has it.
        """
        with (self.path / LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RunFailed(
                    f"--work: another process trains in {self.path}; end it, or give"
                    " another folder"
                ) from error
            yield


def begin(folder: Path, options: argparse.Namespace, names: Iterable[str]) -> None:
    """Refuse options with which a folder's contents would not belong together.

    A start that knows other items than those held out now, for example, has learnt the
    answers to some of these.

    Args:
        folder: Of everything, or of a run.
        options: The command line.
        names: Of those that may not change there.

    Raises:
        RunFailed: It was begun with others; the text names one.
    """
    path = folder / "begun_with.json"
    now = {name: getattr(options, name) for name in names}
    if all(file.name in (path.name, LOCK, LOGS) for file in folder.iterdir()):
        write_whole(path, json.dumps(now))  # nothing was made yet
    then = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    for name, value in now.items():
        if then.get(name) != value:
            raise RunFailed(
                f"--{name.replace('_', '-')}: {folder} was begun with"
                f" {then.get(name)}, not {value}; give another --work for it"
            )
