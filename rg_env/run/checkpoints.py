"""Checkpoints and the ledger, from which a restarted instance continues.

    {checkpoint_dir}/env_checkpoints/{name}/step-{step}.json
    {checkpoint_dir}/env_checkpoints/{name}/ledger.json    the counts, at any time

A folder is named after the environment and its shard. The instance that writes to it
holds the lock of its ledger; another one of the same name takes `{name}.1`. The ledger
has a file of its own, because the newest checkpoint is out of date when a process is
killed. It is written at every change, in one call that SIGKILL cannot interrupt.

If the trainer saves no checkpoints, the newest state alone is kept, below the folder of
the dump files. It is continued whatever its step, as no weights belong to it, and one
of a run with other settings is left aside instead of refused.

Mends B10 of docs/host_defects.md: a checkpoint is written in place, sets any attribute,
needs the exact step, and is silently left out where it is missing.
"""

from __future__ import annotations

import itertools
import json
import logging
import math
import os
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from rg_env.errors import SettingError
from rg_env.line_file import try_lock
from rg_env.run.dumps import Dumps
from rg_env.run.group import Ending, Ledger
from rg_env.stream.curriculum import Feedback

logger = logging.getLogger(__name__)

VERSION = 2

MIN_SAVE_INTERVAL_S = 10.0  # at least, where the trainer names no interval


class BadCheckpointError(SettingError):
    """A checkpoint that cannot be used; the text says which file and why."""


def crosses_multiple(interval: int, before: int, now: int) -> bool:
    """Return whether (before, now] has a multiple of a positive interval.

    The steps of a restarted API begin at 0 again; going back passes no multiple.
    """
    return interval > 0 and now // interval > before // interval


def newest(folder: Path, step: int) -> Path | None:
    """Return the checkpoint of the latest step that is not after `step`, if any."""
    steps = {path.stem[5:]: path for path in folder.glob("step-*.json")}
    fitting = [n for n in steps if n.isdecimal() and int(n) <= step]
    return steps[max(fitting, key=int)] if fitting else None


def load(
    source: Path, parts: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Load a checkpoint into its parts, all or none; return a subclass' own data."""
    before = {name: part.state_dict() for name, part in parts.items()}
    name = "JSON"
    try:
        state = json.loads(source.read_bytes())
        then = {**state["settings"], "version": state["version"]}
        now = {**settings, "version": VERSION}
        both = sorted(then.keys() | now.keys())
        different = [key for key in both if then.get(key) != now.get(key)]
        if different:
            first = different[0]
            raise BadCheckpointError(
                f"{source} is of a run with another {first}: {then.get(first)!r}, now"
                f" {now.get(first)!r}; its items would not be those of this run, so"
                f" restore {', '.join(different)}, or move the file away"
            )
        own = dict(state.get("data", {}))
        for name, part in parts.items():
            part.load_state_dict(state[name])
    except BadCheckpointError:
        raise
    except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
        for each, part in parts.items():
            part.load_state_dict(before[each])
        raise BadCheckpointError(f"{source}: {name}: {error!r}") from error
    return own


class Checkpoints:
    """The checkpoints and the ledger of one environment; files from `begin` on.

    `beside_dumps` says that the state is kept there, as the trainer saves none;
    `protected_names` are attributes that a subclass' data does not replace.
    """

    def __init__(self, env: Any, dumps: Dumps, feedback: Feedback) -> None:
        self._env = env
        self._dumps = dumps
        self._feedback = feedback
        self._folder: Path | None = None
        self._ledger_file: int | None = None
        self._is_begun = False
        self._saved_s = -math.inf
        self.beside_dumps = False
        self.protected_names: Collection[str] = ()
        self.ledger = Ledger()

    @property
    def folder(self) -> Path:
        """This instance's folder, held from the first time on."""
        if self._folder is None:
            config = self._env.config
            root = self._env.checkpoint_dir
            if self.beside_dumps:
                root = config.data_dumps_dir
            name = config.wandb_name or str(self._env.name)
            if config.num_shards > 1:
                name += f"_shard{config.shard_index}of{config.num_shards}"
            self._folder = self._hold(Path(root) / "env_checkpoints" / name)
        return self._folder

    def _hold(self, wanted: Path) -> Path:
        for i in itertools.count():
            folder = wanted.with_name(f"{wanted.name}.{i}") if i else wanted
            try:
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / "ledger.json"
                self._ledger_file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                logger.warning("checkpoints cannot be saved in %s: %s", folder, error)
                break
            # A file system without locks gives every lock.
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
        """Write the ledger; a disk that refuses it is named once."""
        folder = self.folder
        if self._ledger_file is None:
            return
        try:
            # Padded, so that nothing of a longer text before is left behind it.
            size = os.fstat(self._ledger_file).st_size
            os.pwrite(self._ledger_file, json.dumps(ledger).encode().ljust(size), 0)
        except OSError as error:
            logger.warning("no ledger can be written in %s: %s", folder, error)
            self.release()

    # -- saving ------------------------------------------------------------------------

    def begin(self) -> None:
        """Keep the ledger on disk, and save at the end; the files are this run's."""
        if self.beside_dumps and self._env._items is None:
            self.beside_dumps = False  # a subclass with items of its own
            return
        self._is_begun = True
        self.ledger.keep = self._keep_ledger
        self.ledger.tell()
        # A ledger is continued beside a checkpoint only: without one, a kill before the
        # first interval would lose it.
        self.save(self._env.curr_step)

    def save(self, step: int) -> None:
        """Save a checkpoint; a write error does not end the run."""
        self._saved_s = time.monotonic()
        try:
            if not self.beside_dumps:
                self._env.save_checkpoint(step)
                return
            self.write(step, {})
            for path in {*self.folder.glob("step-*.json")} - {self._path(step)}:
                path.unlink()
        except OSError as error:
            logger.error("the checkpoint of step %d is not saved: %s", step, error)

    def save_if_due(self, before: int, now: int) -> None:
        """Save where the steps in (before, now] ask for it."""
        interval = self._env.checkpoint_interval
        if crosses_multiple(interval, before, now):
            self.save(now - now % interval)
        elif (
            self.beside_dumps
            and time.monotonic() - self._saved_s >= MIN_SAVE_INTERVAL_S
        ):
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
        items = self._env._items
        settings = dict(self._env.config.stream_settings)
        if items is not None and items.library.modules:
            settings["task_modules"] = dict(items.library.modules)
        return settings

    def write(self, step: int, data: Mapping[str, Any]) -> None:
        """Write the checkpoint of a step; at any time, the old or new one is there."""
        state = {"version": VERSION, "settings": self._settings()}
        state |= {name: part.state_dict() for name, part in self.parts().items()}
        if data:
            state["data"] = dict(data)
        # One name for all steps: the rest of a killed process is written over.
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / ".part"
        with part.open("w", encoding="utf-8") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path(step))

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step}.json"

    async def end(self) -> None:
        """Save a last checkpoint, if checkpoints are saved, and release the folder."""
        self.ledger.tell()
        if self._is_begun:
            self.save(self._env.curr_step)
        self.release()

    # -- continuing --------------------------------------------------------------------

    def restore(self) -> None:
        """Continue from the newest checkpoint that is not after the current step."""
        step = self._env.curr_step
        source = newest(self.folder, sys.maxsize if self.beside_dumps else step)
        if source is None:
            line = "no checkpoint in %s at or before step %s: starting anew"
            logger.warning(line, self.folder, step)
            return
        try:
            own = load(source, self.parts(), self._settings())
        except BadCheckpointError as error:
            if not self.beside_dumps:
                raise
            logger.warning("not continued: %s", error)
            return
        for name, value in own.items():
            if name not in self.protected_names:
                setattr(self._env, name, value)
        self._continue_ledger()
        logger.info("continuing from %s at item %d", source, self._env.iter)

    def _continue_ledger(self) -> None:
        """Continue the ledger, and count the rollouts in flight at a kill."""
        path = self.folder / "ledger.json"
        try:
            if text := path.read_bytes():  # else no run was begun there
                self.ledger.load_state_dict(json.loads(text))
        except (OSError, ValueError) as error:
            logger.warning("%s is not used: %s", path, error)
            return
        if self.ledger.in_flight > 0:
            self.ledger.settle(Ending.KILLED, self.ledger.in_flight)
