"""Checkpoints and the ledger, from which a restarted instance continues.

    {checkpoint_dir}/env_checkpoints/{name}/step-{step}.json
    {checkpoint_dir}/env_checkpoints/{name}/ledger.json    the counts, at any time

A folder is named after the environment and its shard. The instance that writes to it
holds the lock of its ledger; another one of the same name takes `{name}.1`. The ledger
has a file of its own, because the newest checkpoint is out of date when a process is
killed. It is written at every change, in one call that SIGKILL cannot interrupt.

If the trainer saves no checkpoints, only the newest state is kept, below the folder of
the dump files. It is restored at any step, because no weights belong to it, and it is
ignored if the settings have changed.

Mends B10 of docs/host_defects.md: the framework writes a checkpoint in place, sets any
attribute, needs the exact step, and silently ignores a missing checkpoint.
"""

from __future__ import annotations

import itertools
import json
import logging
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from rg_env.errors import SettingError
from rg_env.line_file import try_lock
from rg_env.run.dumps import Dumps
from rg_env.run.ledger import Ending, Ledger
from rg_env.stream.curriculum import Feedback
from rg_env.stream.prefetch import RunItems

logger = logging.getLogger(__name__)

VERSION = 2

MIN_SAVE_INTERVAL_S = 10.0  # if the trainer names no interval

INVALID_STATE = (AttributeError, KeyError, OSError, TypeError, ValueError)
"""Errors of reading a file that is not a checkpoint, or has an invalid state."""


class BadCheckpointError(SettingError):
    """A checkpoint that cannot be used; the text says which file and why."""


class CheckpointedEnv(Protocol):
    """The attributes of an environment that its checkpoints read."""

    name: Any
    config: Any
    checkpoint_dir: str
    checkpoint_interval: int
    curr_step: int
    _items: RunItems | None

    def _prepared_items(self) -> RunItems: ...

    def save_checkpoint(self, step: int) -> None:
        """Save a checkpoint; the hook of a subclass may add data to it."""


def crosses_multiple(interval: int, before: int, now: int) -> bool:
    """Return whether (before, now] has a multiple of a positive interval.

    The steps of a restarted API begin at 0 again; going back crosses no multiple.
    """
    return interval > 0 and now // interval > before // interval


def find_newest(folder: Path, max_step: float) -> Path | None:
    """Return the checkpoint of the latest step up to `max_step`, None without one."""
    paths = {}
    for path in folder.glob("step-*.json"):
        step = path.stem.removeprefix("step-")
        if step.isdecimal() and int(step) <= max_step:
            paths[int(step)] = path
    return paths[max(paths)] if paths else None


def load(
    source: Path, parts: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Load a checkpoint into all of its parts; return the data of a subclass.

    Raises:
        BadCheckpointError: The file is invalid or of a run with other settings; all
            parts are as before.
    """
    try:
        state = json.loads(source.read_bytes())
        saved_settings = {**state["settings"], "version": state["version"]}
        data = dict(state.get("data", {}))
    except INVALID_STATE as error:
        raise BadCheckpointError(f"{source}: JSON: {error!r}") from error
    _check_same_run(source, saved_settings, {**settings, "version": VERSION})
    before = {name: part.state_dict() for name, part in parts.items()}
    for name, part in parts.items():
        try:
            part.load_state_dict(state[name])
        except INVALID_STATE as error:
            for changed, old_state in before.items():
                parts[changed].load_state_dict(old_state)
            raise BadCheckpointError(f"{source}: {name}: {error!r}") from error
    return data


def _check_same_run(
    source: Path, saved: Mapping[str, Any], current: Mapping[str, Any]
) -> None:
    names = sorted(saved.keys() | current.keys())
    different = [name for name in names if saved.get(name) != current.get(name)]
    if different:
        first = different[0]
        raise BadCheckpointError(
            f"{source} is of a run with another {first}: {saved.get(first)!r}, now"
            f" {current.get(first)!r}; its items would not be those of this run, so"
            f" restore {', '.join(different)}, or move the file away"
        )


class Checkpoints:
    """The checkpoints and the ledger of one environment; files from `begin` on.

    Args:
        env: The environment, whose step and folder change during a run.
        dumps: Its dumps; a checkpoint has their counters.
        feedback: Its results and levels, which a checkpoint has too.

    Attributes:
        beside_dumps: Whether the state is kept beside the dump files, because the
            trainer saves no checkpoints.
        ledger: Its ledger, which `restore` reads and which is written after `begin`.
    """

    def __init__(self, env: CheckpointedEnv, dumps: Dumps, feedback: Feedback) -> None:
        self._env = env
        self._dumps = dumps
        self._feedback = feedback
        self._folder: Path | None = None
        self._ledger_file: int | None = None
        self._has_begun = False
        self._saved_s = -math.inf
        self.beside_dumps = False
        self.ledger = Ledger()

    # -- its folder --------------------------------------------------------------------

    def hold_folder(self) -> Path:
        """Return this instance's folder; the first call creates and locks it."""
        if self._folder is None:
            config = self._env.config
            root = self._env.checkpoint_dir
            if self.beside_dumps:
                root = config.data_dumps_dir
            name = config.wandb_name or str(self._env.name)
            if config.num_shards > 1:
                name += f"_shard{config.shard_index}of{config.num_shards}"
            self._folder = self._lock_folder(Path(root) / "env_checkpoints" / name)
        return self._folder

    def _lock_folder(self, wanted: Path) -> Path:
        """Return the first of `wanted`, `wanted.1`, ... that no instance holds.

        If a folder cannot be written, `wanted` is returned without a lock.
        """
        for i in itertools.count():
            folder = wanted.with_name(f"{wanted.name}.{i}") if i else wanted
            try:
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / "ledger.json"
                self._ledger_file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                logger.warning("checkpoints cannot be saved in %s: %s", folder, error)
                break
            # On a file system without locks, every folder counts as free.
            if try_lock(self._ledger_file) is not False:
                return folder
            self.release()
        return wanted

    def release(self) -> None:
        """Let the next instance continue this one; may be called twice."""
        if self._ledger_file is not None:
            os.close(self._ledger_file)
        self._ledger_file = None

    def _keep_ledger(self, ledger: Mapping[str, Any]) -> None:
        """Write the ledger; the first write error is logged and ends the writing."""
        folder = self.hold_folder()
        if self._ledger_file is None:
            return
        try:
            # Padded, so that no end of a longer, earlier text is left behind it.
            size = os.fstat(self._ledger_file).st_size
            os.pwrite(self._ledger_file, json.dumps(ledger).encode().ljust(size), 0)
        except OSError as error:
            logger.warning("no ledger can be written in %s: %s", folder, error)
            self.release()

    # -- saving ------------------------------------------------------------------------

    def begin(self) -> None:
        """Keep the ledger on disk from now on, and save a first checkpoint."""
        if self.beside_dumps and self._env._items is None:
            self.beside_dumps = False  # a subclass with items of its own
            return
        self._has_begun = True
        self.ledger.on_change = self._keep_ledger
        self.ledger.notify()
        # A ledger is only continued beside a checkpoint: without one, a kill before the
        # first interval would lose it.
        self.save(self._env.curr_step)

    def save(self, step: int) -> None:
        """Save a checkpoint; a write error does not end the run."""
        self._saved_s = time.monotonic()
        try:
            if not self.beside_dumps:
                self._env.save_checkpoint(step)
                return
            newest = self.write(step, {})
            for path in {*newest.parent.glob("step-*.json")} - {newest}:
                path.unlink()
        except OSError as error:
            logger.error("the checkpoint of step %d is not saved: %s", step, error)

    def save_if_due(self, before: int, now: int) -> None:
        """Save if a step in (before, now] is due for a checkpoint."""
        interval = self._env.checkpoint_interval
        if crosses_multiple(interval, before, now):
            self.save(now - now % interval)
            return
        since_saved_s = time.monotonic() - self._saved_s
        if self.beside_dumps and since_saved_s >= MIN_SAVE_INTERVAL_S:
            self.save(now)

    def parts(self) -> dict[str, Any]:
        """Return the owner of each part of a checkpoint."""
        parts = {
            "items": self._env._prepared_items(),
            "progress": self._feedback.progress,
            "curriculum": self._feedback.curriculum,
            "metrics": self.ledger,
            "saved": self._dumps.saved,
            "failed": self._dumps.failed,
        }
        if self._feedback.adaptive is not None:
            parts["adaptive"] = self._feedback.adaptive
        return parts

    def _settings(self) -> dict[str, Any]:
        """Return the settings that decide the items, and the modules of own tasks."""
        settings = dict(self._env.config.stream_settings)
        if modules := self._env._prepared_items().library.modules:
            settings["task_modules"] = dict(modules)
        return settings

    def write(self, step: int, data: Mapping[str, Any]) -> Path:
        """Write the checkpoint of a step, and return its path.

        It replaces an older one of the step only once it is complete.
        """
        state = {"version": VERSION, "settings": self._settings()}
        state |= {name: part.state_dict() for name, part in self.parts().items()}
        if data:
            state["data"] = dict(data)
        folder = self.hold_folder()
        folder.mkdir(parents=True, exist_ok=True)
        # One name for all steps: what a killed process left is written over.
        unfinished = folder / ".part"
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        return unfinished.replace(folder / f"step-{step}.json")

    async def end(self) -> None:
        """Save a last checkpoint, if checkpoints are saved, and release the folder."""
        self.ledger.notify()
        if self._has_begun:
            self.save(self._env.curr_step)
        self.release()

    # -- continuing --------------------------------------------------------------------

    def restore(self) -> dict[str, Any]:
        """Continue from the newest checkpoint that is not after the current step.

        Returns:
            The data of a subclass; {} if no checkpoint is continued.

        Raises:
            BadCheckpointError: The checkpoint cannot be used, and the trainer's weights
                belong to it.
        """
        step = self._env.curr_step
        folder = self.hold_folder()
        source = find_newest(folder, math.inf if self.beside_dumps else step)
        if source is None:
            logger.warning(
                "no checkpoint in %s at or before step %s: starting anew", folder, step
            )
            return {}
        parts = self.parts()
        try:
            data = load(source, parts, self._settings())
        except BadCheckpointError as error:
            if not self.beside_dumps:
                raise
            logger.warning("not continued: %s", error)
            return {}
        self._continue_ledger(folder)
        logger.info("continuing from %s at item %d", source, parts["items"].position)
        return data

    def _continue_ledger(self, folder: Path) -> None:
        """Continue the ledger, and count the rollouts in flight at a kill."""
        path = folder / "ledger.json"
        try:
            if text := path.read_bytes():  # empty if no run has begun there
                self.ledger.load_state_dict(json.loads(text))
        except (OSError, ValueError) as error:
            logger.warning("%s is not used: %s", path, error)
            return
        if self.ledger.in_flight > 0:
            self.ledger.settle(Ending.KILLED, self.ledger.in_flight)
