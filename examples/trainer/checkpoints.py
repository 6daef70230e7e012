"""What a training goes on from, whenever and however it ended."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from examples.trainer.policy import Policy

HISTORY = "history.jsonl"


class Checkpoints:
    """The newest state of a training, in a folder.

    Args:
        folder: For `step-N` and the history of the steps up to it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def step(self) -> int | None:
        """Steps done at the newest one; None without any."""
        steps = [int(path.name.removeprefix("step-")) for path in self._all()]
        return max(steps, default=None)

    def load(self, policy: Policy) -> int:
        """Give a policy the newest state, if there is one; return its step."""
        step = self.step or 0
        if self.step is not None:
            policy.load(self._at(step))
        history = self._folder / HISTORY
        self._folder.mkdir(parents=True, exist_ok=True)
        text = history.read_text(encoding="utf-8") if history.is_file() else ""
        whole = text.split("\n")[:-1]  # a kill leaves half a line
        # Steps after the checkpoint are done again.
        kept = [line for line in whole if json.loads(line)["number"] <= step]
        new = history.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        new.replace(history)
        return step

    def note(self, step: Mapping[str, Any]) -> None:
        """Add a step to the history."""
        with (self._folder / HISTORY).open("a", encoding="utf-8") as history:
            history.write(json.dumps(step) + "\n")

    def save(self, policy: Policy, step: int) -> None:
        """Keep a state, unless it is kept; the one before goes when it is whole."""
        if step == self.step:
            return
        unfinished = self._folder / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            policy.save(unfinished)
        except BaseException:  # a full disk must not stay full of what nobody reads
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        old = self._all()
        unfinished.replace(self._at(step))
        for folder in old:
            shutil.rmtree(folder)

    def _at(self, step: int) -> Path:
        return self._folder / f"step-{step:06d}"

    def _all(self) -> list[Path]:
        return list(self._folder.glob("step-*"))
