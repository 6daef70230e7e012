"""Checkpoints and the ledger, from which a restarted instance continues.

    {checkpoint_dir}/env_checkpoints/{name}/step-{step}.json
    {checkpoint_dir}/env_checkpoints/{name}/ledger.json    what was counted, at any time
    {checkpoint_dir}/env_checkpoints/.{name}.lock          held by the running instance

The API numbers instances in the order of their registration. A restarted instance
therefore gets a new name if the API is still running, and perhaps the name of another
instance if it is not. Locks show which folders belong to running instances; of the
other folders, the one that was written last is continued. The folder of a shard is
named after the shard, so each shard continues its own, in whatever order they are
started.

The ledger has a file of its own, because the newest checkpoint is out of date when a
process is killed. The ledger is written at every change, in one call that SIGKILL
cannot interrupt.

If the trainer saves no checkpoints, the newest state alone is kept, below the folder of
the dump files. It is continued whatever its step, as no weights belong to it, and one
of a run with other settings is left aside instead of refused.

Mends B10 of docs/host_defects.md: a checkpoint sets any attribute, needs the exact
step, and is silently left out where it is missing.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rg_env.atropos import checkpoint_files
from rg_env.atropos.checkpoint_files import BadCheckpointError, Stateful
from rg_env.items.run_stream import RunStream
from rg_env.rollouts.group import Ending, Ledger
from rg_env.rollouts.line_file import try_lock
from rg_env.rollouts.run_dumps import Dumps
from rg_env.tasks.feedback import Feedback

if TYPE_CHECKING:
    from atroposlib.envs.base import BaseEnv

logger = logging.getLogger(__name__)

MAX_NAMES = 100

SAVE_EVERY_S = 10.0
"""At least between two saves of a run whose trainer names no interval."""


def passed(interval: int, before: int, now: int) -> bool:
    """Return whether (before, now] has a multiple of a positive interval.

    The steps of a restarted API begin at 0 again; going back passes no multiple.
    """
    return interval > 0 and now // interval > before // interval


def _lock(path: Path) -> int | None:
    """Return the descriptor of a lock, None where a running process holds it.

    A file system without locks gives every lock.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    if try_lock(descriptor) is False:
        os.close(descriptor)
        return None
    return descriptor


class CheckpointFolder:
    """The folder of one instance, held until `release`.

    Args:
        root: The trainer's checkpoint_dir.
        name: What the API calls the instance; while another process holds that name's
            folder, a free one is taken.
        shard: Name of its part of the items; None where it has all of them.

    Attributes:
        name: The folder's name.
    """

    def __init__(self, root: str, name: str, shard: str | None = None) -> None:
        self._root = root
        # The API appends its number to the name that was asked for.
        stem = name.rpartition("_")[0]
        if shard is not None:
            name = f"{stem or name}_{shard}"
        siblings = f"{stem}_*" if stem else ""
        self._continued = siblings if shard is None else f"{name}.*"
        self.name = name
        self._held: int | None = None
        self._ledger: int | None = None
        self._ledger_bytes = 0
        try:
            self._hold(name)
        except OSError as error:
            logger.warning("checkpoints cannot be saved in %s: %s", self._base, error)

    @property
    def _base(self) -> Path:
        return self.path(0).parent.parent

    def _lock_path(self, name: str) -> Path:
        return self._base / f".{name}.lock"

    def _hold(self, name: str) -> None:
        self._base.mkdir(parents=True, exist_ok=True)
        for i in range(MAX_NAMES):
            self.name = f"{name}.{i}" if i else name
            self._held = _lock(self._lock_path(self.name))
            if self._held is not None:
                return
        raise BlockingIOError(f"{MAX_NAMES} processes hold {name}")

    def path(self, step: int) -> Path:
        """Return where the checkpoint of a step is written."""
        return checkpoint_files.path(self._root, self.name, step)

    def left(self, step: int) -> list[Path]:
        """Return the checkpoints to continue, the newest first, none after `step`."""
        newest = [
            checkpoint_files.newest(self._root, name, step)
            for name in self._left_names()
        ]
        found = [path for path in newest if path is not None]
        return sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True)

    def keep_only(self, step: int) -> None:
        """Remove our checkpoints of other steps."""
        own = self.path(step)
        for path in set(own.parent.glob("step-*.json")) - {own}:
            path.unlink(missing_ok=True)

    def _left_names(self) -> Iterator[str]:
        """Yield our name and those like it that no process holds."""
        yield self.name
        pattern = self._continued
        for folder in sorted(self._base.glob(pattern)) if pattern else []:
            if folder.name == self.name or not folder.is_dir():
                continue
            lock = _lock(self._lock_path(folder.name))
            if lock is not None:
                # Only a test: we read that folder now, and write to our own.
                os.close(lock)
                yield folder.name

    def begin_ledger(self) -> None:
        """Keep a ledger from here on; a disk that refuses it is named."""
        target = self.path(0).with_name("ledger.json")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
            self._ledger = os.open(target, flags, 0o644)
            self._ledger_bytes = target.stat().st_size
        except OSError as error:
            logger.warning("the ledger cannot be written to %s: %s", target, error)

    def keep(self, ledger: Mapping[str, Any]) -> None:
        """Write the ledger, if one was begun."""
        if self._ledger is None:
            return
        text = json.dumps(ledger).encode()
        # Padded, so that nothing of a longer text before is left behind it.
        self._ledger_bytes = max(self._ledger_bytes, len(text))
        try:
            os.pwrite(self._ledger, text.ljust(self._ledger_bytes), 0)
        except OSError as error:
            logger.warning("the ledger can no longer be written: %s", error)
            self._ledger = None

    def release(self) -> None:
        """Let the next instance continue this one; may be called twice."""
        for descriptor in (self._ledger, self._held):
            if descriptor is not None:
                os.close(descriptor)
        self._ledger = self._held = None


def left_ledger(source: Path) -> dict[str, Any] | None:
    """Return the ledger that lies beside a checkpoint, None where there is none."""
    try:
        ledger = json.loads((source.parent / "ledger.json").read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger.warning("the ledger beside %s cannot be read: %s", source, error)
        return None
    return ledger if isinstance(ledger, dict) else None


class Checkpoints:
    """The checkpoints and the ledger of one environment.

    Args:
        env: Its hook saves; names and settings of the run are its.
        dumps: Their progress and what they have lost is saved.
        feedback: What results have moved is saved.
        sampled: Returns what the run samples; None before `setup`.

    Attributes:
        ledger: What became of the rollouts; on disk from `begin` on.
        beside_dumps: Whether the state is kept there, as the trainer saves none.
        kept_names: Attributes that a subclass' data in a checkpoint does not replace.
    """

    def __init__(
        self,
        env: BaseEnv,
        dumps: Dumps,
        feedback: Feedback,
        sampled: Callable[[], RunStream | None],
    ) -> None:
        self._env = env
        self._dumps = dumps
        self._feedback = feedback
        self._sampled = sampled
        self._folder: CheckpointFolder | None = None
        self.beside_dumps = False
        self._is_begun = False
        self._saved_s = -math.inf
        self.kept_names: Collection[str] = ()
        self.ledger = Ledger(self._keep_ledger)

    def _keep_ledger(self, ledger: dict[str, Any]) -> None:
        if self._folder is not None:
            self._folder.keep({**ledger, **self._dumps.losses()})

    @property
    def _name(self) -> str:
        return self._env.wandb_prepend or str(self._env.name)

    @property
    def folder(self) -> CheckpointFolder:
        """This instance's folder, held from the first time on."""
        if self._folder is None:
            config = self._env.config
            index, count = config.shard_index, config.num_shards
            shard = None if count == 1 else f"shard{index}of{count}"
            self._folder = CheckpointFolder(self._root, self._name, shard)
        return self._folder

    @property
    def _root(self) -> str:
        env = self._env
        return str(
            env.config.data_dumps_dir if self.beside_dumps else env.checkpoint_dir
        )

    def begin(self) -> None:
        """Keep the ledger on disk, and save at the end; the files are this run's."""
        if self.beside_dumps and self._sampled() is None:
            self.beside_dumps = False  # a subclass with items of its own
            return
        self.folder.begin_ledger()
        self._is_begun = True
        self.ledger.tell()
        # A ledger is found beside a checkpoint only: without one, a kill before the
        # first interval would lose it.
        self.save(self._env.curr_step)

    def save(self, step: int) -> None:
        """Save a checkpoint; a write error does not end the run.

        The hook is the trainer's: it is called where the trainer wants checkpoints.
        """
        self._saved_s = time.monotonic()
        try:
            if self.beside_dumps:
                self.write(step, {})
                self.folder.keep_only(step)
            else:
                self._env.save_checkpoint(step)
        except OSError as error:
            logger.error("the checkpoint of step %d is not saved: %s", step, error)

    def take_step(self, before: int, now: int) -> None:
        """Save where the steps in (before, now] ask for it."""
        interval = self._env.checkpoint_interval
        if passed(interval, before, now):
            self.save(now - now % interval)
        elif self.beside_dumps and time.monotonic() - self._saved_s >= SAVE_EVERY_S:
            self.save(now)

    def state_owners(self) -> dict[str, Stateful]:
        """Return the owner of each part of a checkpoint."""
        made, feedback = self._sampled(), self._feedback
        if made is None:
            raise RuntimeError("this needs setup() first")
        adaptive = feedback.adaptive
        return {
            "items": made,
            "progress": feedback.progress,
            "curriculum": feedback.curriculum,
            **({} if adaptive is None else {"adaptive": adaptive}),
            "metrics": self.ledger,
            "saved": self._dumps.saved,
            "failed": self._dumps.failed,
        }

    def _stream_settings(self) -> dict[str, Any]:
        """Return the settings that decide the items, and the modules of own tasks."""
        made = self._sampled()
        modules = {} if made is None else dict(made.library.modules)
        own = {"task_modules": modules} if modules else {}
        return {**self._env.config.stream_settings, **own}

    def write(self, step: int, data: Mapping[str, Any]) -> None:
        """Write the checkpoint of a step: the environment's state, and `data`."""
        state = checkpoint_files.collect(self.state_owners(), self._stream_settings())
        own = {"data": dict(data)} if data else {}
        checkpoint_files.write(self.folder.path(step), {**state, **own})

    def restore(self) -> None:
        """Continue from the newest checkpoint that is not after the current step.

        Raises:
            BadCheckpointError: The file is broken or of another kind; none of it is
                loaded.
        """
        step = self._env.curr_step
        for source in self._sources(step):
            owners, settings = self.state_owners(), self._stream_settings()
            try:
                own = checkpoint_files.restore(owners, settings, source)
            except BadCheckpointError as error:
                if not source.is_relative_to(self._env.config.data_dumps_dir):
                    raise
                logger.warning("not continued: %s", error)
                continue
            for name, value in own.items():
                if name in self.kept_names:
                    what = "which is the environment's own"
                    logger.warning("%s: %s, %s, is not restored", source, name, what)
                else:
                    setattr(self._env, name, value)
            self._continue_ledger(source)
            logger.info("continuing from %s at item %d", source, self._env.iter)
            return
        where = f"{self._root or '.'} at or before step {step}"
        logger.warning("no checkpoint of %s in %s: starting anew", self._name, where)

    def _sources(self, step: int) -> list[Path]:
        if not self.beside_dumps:
            return self.folder.left(step)[:1]
        kept = self.folder.left(sys.maxsize)
        # A trainer that saves none now may have saved some before.
        theirs = checkpoint_files.newest(self._env.checkpoint_dir, self._name, step)
        return kept or ([] if theirs is None else [theirs])

    def _continue_ledger(self, source: Path) -> None:
        """Continue the ledger of the process that left a checkpoint.

        What was in flight and not yet counted when it was killed is counted here.
        """
        left = left_ledger(source)
        if left is None:
            return
        try:
            self.ledger.load_state_dict(left)
            self._dumps.take_over_losses(left)
        except ValueError as error:
            logger.warning("the ledger beside %s is not used: %s", source, error)
            return
        if self.ledger.in_flight > 0:
            self.ledger.settle(Ending.KILLED, self.ledger.in_flight)

    async def end(self) -> None:
        """Save a last checkpoint, if checkpoints are saved, and release the folder.

        By then, the ending of every rollout is known.
        """
        self.ledger.tell()
        if self._is_begun:
            self.save(self._env.curr_step)
        if self._folder is not None:
            self._folder.release()
