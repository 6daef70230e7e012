"""Where everything of a training lies: the folder `--work`."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
from collections.abc import Iterator
from pathlib import Path

from examples.trainer.checkpoints import write_whole
from rg_env.errors import RunError

MAY_CHANGE = ("plugin_python", "runs", "seeds", "server", "tasks", "work")
"""Options with which a folder may be gone on with. With other items held out, for
example, a start would have learnt the answers to some of them."""


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
        self.logs = self.path / "logs"
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
    def taken(self, options: argparse.Namespace) -> Iterator[None]:
        """Keep others from it while the context lasts.

        Raises:
            RunError: Another process has it, or it was begun with other options.
        """
        with (self.path / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RunError(
                    f"--work: another process trains in {self.path}; end it, or give"
                    " another folder"
                ) from error
            self._begin({n: v for n, v in vars(options).items() if n not in MAY_CHANGE})
            yield

    def _begin(self, options: dict[str, object]) -> None:
        path = self.path / "begun_with.json"
        if not self.tokenizer.is_dir():  # nothing was made yet
            write_whole(path, json.dumps(options))
        then = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        for name, value in options.items():
            if then.get(name) != value:
                raise RunError(
                    f"--{name.replace('_', '-')}: {self.path} was begun with"
                    f" {then.get(name)}, not {value}; give another --work for it"
                )
