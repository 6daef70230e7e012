"""Where everything of a training lies: the folder `--work`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rg_env.errors import RunFailed

BEGUN_WITH = (
    *("conversations", "held_out", "layers", "model"),
    *("warm_seconds", "warm_target", "width"),
)
"""Options that may not change in a folder."""


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

    def begin(self, options: argparse.Namespace) -> None:
        """Refuse options with which its contents would not belong together.

        A start that knows other items than those held out now, for example, has learnt
        the answers to some of these.

        Raises:
            RunFailed: It was begun with others; the text names one.
        """
        path = self.path / "begun_with.json"
        now = {name: getattr(options, name) for name in BEGUN_WITH}
        then = json.loads(path.read_text("utf-8")) if path.is_file() else now
        for name, value in now.items():
            if then.get(name) != value:
                raise RunFailed(
                    f"--{name.replace('_', '-')}: {self.path} was begun with"
                    f" {then.get(name)}, not {value}; give another --work for it"
                )
        path.write_text(json.dumps(now), encoding="utf-8")
