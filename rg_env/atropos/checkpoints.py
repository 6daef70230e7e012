"""Checkpoints and the ledger, from which a restarted instance continues.

    {checkpoint_dir}/env_checkpoints/{name}/step-{step}.json
    {checkpoint_dir}/env_checkpoints/{name}/ledger.json    what was counted, at any time
    {checkpoint_dir}/env_checkpoints/.{name}.lock          held by the running instance

The API numbers instances in the order of their registration, so a restarted instance
may get a new name or that of another one. Locks show which folders belong to running
instances; of the others, the one that was written last is continued. The folder of a
shard is named after the shard, so each shard continues its own.

The ledger has a file of its own, because the newest checkpoint is out of date when a
process is killed. It is written at every change, in one call that SIGKILL cannot
interrupt.

If the trainer saves no checkpoints, the newest state alone is kept, below the folder of
the dump files. It is continued whatever its step, as no weights belong to it, and one
of a run with other settings is left aside instead of refused.

Mends B10 of docs/host_defects.md: a checkpoint is written in place, sets any attribute,
needs the exact step, and is silently left out where it is missing.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rg_env.errors import SettingError
from rg_env.items.run_stream import RunStream
from rg_env.rollouts.dumps import Dumps
from rg_env.rollouts.group import Ending, Ledger
from rg_env.tasks.feedback import Feedback
from rg_env.whole_files import try_lock

if TYPE_CHECKING:
    from atroposlib.envs.base import BaseEnv

logger = logging.getLogger(__name__)

VERSION = 2

SAVE_EVERY_S = 10.0
"""At least between two saves of a run whose trainer names no interval."""


class BadCheckpointError(SettingError):
    """A checkpoint that cannot be used; the text says which file and why."""


def passed(interval: int, before: int, now: int) -> bool:
    """Return whether (before, now] has a multiple of a positive interval.

    The steps of a restarted API begin at 0 again; going back passes no multiple.
    """
    return interval > 0 and now // interval > before // interval


def newest(folder: Path, step: int) -> Path | None:
    """Return the checkpoint of the latest step that is not after `step`, if any."""
    steps = {path.stem[5:]: path for path in folder.glob("step-*.json")}
    fitting = [n for n in steps if n.isdecimal() and int(n) <= step]
    return steps[max(fitting, key=int)] if fitting else None


class CheckpointFolder:
    """The folder of one instance, held until `release`.

    Args:
        root: The trainer's checkpoint_dir.
        name: What the API calls the instance; while another process holds that name's
            folder, a free one is taken.
        shard: Name of its part of the items; None where it has all of them.

    Attributes:
        path: The folder.
        has_ledger: Whether `keep` writes a ledger.
    """

    def __init__(self, root: str, name: str, shard: str | None = None) -> None:
        base = Path(root) / "env_checkpoints"
        # The API appends its number to the name that was asked for.
        stem = name.rpartition("_")[0]
        self._siblings = f"{stem}_*" if stem else name
        if shard is not None:
            name = f"{stem or name}_{shard}"
            self._siblings = f"{name}.*"
        self.path = base / name
        self._held: int | None = None
        self._ledger: int | None = None
        self._ledger_bytes = 0
        self.has_ledger = False
        try:
            base.mkdir(parents=True, exist_ok=True)
            for i in range(100):
                self.path = base / (f"{name}.{i}" if i else name)
                self._held = self._lock(self.path)
                if self._held is not None:
                    break
        except OSError as error:
            logger.warning("checkpoints cannot be saved in %s: %s", base, error)

    def _lock(self, folder: Path) -> int | None:
        """Return the descriptor of a lock, None where a running process holds it.

        A file system without locks gives every lock.
        """
        path = folder.with_name(f".{folder.name}.lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if try_lock(descriptor) is False:
            os.close(descriptor)
            return None
        return descriptor

    def write(self, step: int, state: Mapping[str, Any]) -> None:
        """Write a checkpoint: whatever happens, the old file is there or the new one.

        Raises:
            OSError: The disk refuses it; the old file stays.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        # One name for all steps: what a killed process left is written over.
        part = self.path / ".part"
        with part.open("w", encoding="utf-8") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path / f"step-{step}.json")

    def keep_only(self, step: int) -> None:
        """Remove our checkpoints of other steps."""
        for path in self.path.glob("step-*.json"):
            if path.name != f"step-{step}.json":
                path.unlink(missing_ok=True)

    def left(self, step: int) -> list[Path]:
        """Return the checkpoints to continue, the newest first, none after `step`."""
        folders = [self.path]
        for other in {*self.path.parent.glob(self._siblings)} - {self.path}:
            if other.is_dir() and (lock := self._lock(other)) is not None:
                # Only a test: we read that folder now, and write to our own.
                os.close(lock)
                folders.append(other)
        checkpoints = filter(None, [newest(folder, step) for folder in folders])
        return sorted(checkpoints, key=lambda p: p.stat().st_mtime_ns, reverse=True)

    def keep(self, ledger: Mapping[str, Any]) -> None:
        """Write the ledger; a disk that refuses it is named once."""
        if not self.has_ledger:
            return
        text = json.dumps(ledger).encode()
        try:
            if self._ledger is None:
                self.path.mkdir(parents=True, exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
                self._ledger = os.open(self.path / "ledger.json", flags, 0o644)
                self._ledger_bytes = os.fstat(self._ledger).st_size
            # Padded, so that nothing of a longer text before is left behind it.
            self._ledger_bytes = max(self._ledger_bytes, len(text))
            os.pwrite(self._ledger, text.ljust(self._ledger_bytes), 0)
        except OSError as error:
            logger.warning("no ledger can be written in %s: %s", self.path, error)
            self.has_ledger = False

    def release(self) -> None:
        """Let the next instance continue this one; may be called twice."""
        for descriptor in (self._ledger, self._held):
            if descriptor is not None:
                os.close(descriptor)
        self._ledger = self._held = None
        self.has_ledger = False


# -- what a checkpoint holds -----------------------------------------------------------


def _check_run(
    state: Mapping[str, Any], settings: Mapping[str, Any], source: Path
) -> None:
    """Raise `BadCheckpointError` for a checkpoint whose items are not those of now."""
    if state.get("version") != VERSION:
        raise BadCheckpointError(
            f"{source} has version {state.get('version')!r}, needed is {VERSION};"
            " move it away to begin anew"
        )
    then = state["settings"]
    names = sorted(then.keys() | settings.keys())
    different = [name for name in names if then.get(name) != settings.get(name)]
    if different:
        name = different[0]
        raise BadCheckpointError(
            f"{source} is of a run with another {name}: {then.get(name)!r}, now"
            f" {settings.get(name)!r}; its items would not be those of this run, so set"
            f" {', '.join(different)} as it was, or move the file away"
        )


def _of_original(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a checkpoint of the original can be continued.

    A level was one of its own table, and is where ours begins. Its generator and its
    histories, which lack the levels of their groups, have no meaning here.

    Source: atropos 296a0bc, save_checkpoint().
    """
    groups = state.get("task_group_counts", {})
    levels = state.get("task_complexity_levels", {}).items()
    tasks = {t: {"level": x, "counted_from": None} for t, x in levels if groups.get(t)}
    names = {"batch_num": "save_file_batch_num", "groups_total": "processed_item_count"}
    return {
        "items": {"drawn": state["iter"], "outstanding": [], "asked": {}},
        "curriculum": {"tasks": tasks},
        "saved": {ours: state.get(its, 0) for ours, its in names.items()},
        "failed": {ours: state.get(f"failed_{its}", 0) for ours, its in names.items()},
        "data": state,  # of which a subclass has what is no name of ours
    }


def load(
    source: Path, parts: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Load a checkpoint, also one of the original, into its parts: all or none.

    Returns:
        What a subclass has saved with it.

    Raises:
        BadCheckpointError: The file is broken, of another version or run, or lacks
            a part.
    """
    before = {name: part.state_dict() for name, part in parts.items()}
    name = "JSON"
    try:
        state = json.loads(source.read_bytes())
        if "version" not in state and "iter" in state:
            logger.warning("%s is of the original, whose items were others", source)
            state = {**before, **_of_original(state)}
        else:
            _check_run(state, settings, source)
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
    """The checkpoints and the ledger of one environment.

    Args:
        env: Its hook saves; names and settings of the run are its.
        dumps, feedback: Their state is saved.
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
        self._env, self._dumps, self._feedback = env, dumps, feedback
        self._sampled = sampled
        self._folder: CheckpointFolder | None = None
        self.beside_dumps = self._is_begun = False
        self._saved_s = -math.inf
        self.kept_names: Collection[str] = ()
        self.ledger = Ledger(self._keep_ledger)

    def _keep_ledger(self, ledger: dict[str, Any]) -> None:
        if self._folder is not None:
            self._folder.keep({**ledger, **self._dumps.losses()})

    @property
    def folder(self) -> CheckpointFolder:
        """This instance's folder, held from the first time on."""
        if self._folder is None:
            env, config = self._env, self._env.config
            root = config.data_dumps_dir if self.beside_dumps else env.checkpoint_dir
            index, count = config.shard_index, config.num_shards
            shard = None if count == 1 else f"shard{index}of{count}"
            name = env.wandb_prepend or str(env.name)
            self._folder = CheckpointFolder(str(root), name, shard)
        return self._folder

    def begin(self) -> None:
        """Keep the ledger on disk, and save at the end; the files are this run's."""
        if self.beside_dumps and self._sampled() is None:
            self.beside_dumps = False  # a subclass with items of its own
            return
        self.folder.has_ledger = self._is_begun = True
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

    def parts(self) -> dict[str, Any]:
        """Return the owner of each part of a checkpoint."""
        stream, feedback = self._sampled(), self._feedback
        if stream is None:
            raise RuntimeError("this needs setup() first")
        adaptive = feedback.adaptive
        return {
            "items": stream,
            "progress": feedback.progress,
            "curriculum": feedback.curriculum,
            **({} if adaptive is None else {"adaptive": adaptive}),
            "metrics": self.ledger,
            "saved": self._dumps.saved,
            "failed": self._dumps.failed,
        }

    def _settings(self) -> dict[str, Any]:
        """Return the settings that decide the items, and the modules of own tasks."""
        stream = self._sampled()
        modules = {} if stream is None else dict(stream.library.modules)
        own = {"task_modules": modules} if modules else {}
        return {**self._env.config.stream_settings, **own}

    def write(self, step: int, data: Mapping[str, Any]) -> None:
        """Write the checkpoint of a step: the environment's state, and `data`."""
        states = {name: part.state_dict() for name, part in self.parts().items()}
        own = {"data": dict(data)} if data else {}
        settings = {"version": VERSION, "settings": self._settings()}
        self.folder.write(step, {**settings, **states, **own})

    def restore(self) -> None:
        """Continue from the newest checkpoint that is not after the current step.

        Raises:
            BadCheckpointError: The file is broken or of another kind; none of it is
                loaded.
        """
        step = self._env.curr_step
        for source in self._sources(step):
            try:
                own = load(source, self.parts(), self._settings())
            except BadCheckpointError as error:
                if not source.is_relative_to(self._env.config.data_dumps_dir):
                    raise
                logger.warning("not continued: %s", error)
                continue
            for name, value in own.items():
                if name not in self.kept_names:
                    setattr(self._env, name, value)
            self._continue_ledger(source)
            logger.info("continuing from %s at item %d", source, self._env.iter)
            return
        where = f"{self.folder.path} at or before step {step}"
        logger.warning("no checkpoint in %s: starting anew", where)

    def _sources(self, step: int) -> list[Path]:
        if not self.beside_dumps:
            return self.folder.left(step)[:1]
        # A trainer that saves none now may have saved some before.
        base = Path(self._env.checkpoint_dir) / "env_checkpoints"
        theirs = newest(base / self.folder.path.name, step)
        return self.folder.left(sys.maxsize) or ([theirs] if theirs else [])

    def _continue_ledger(self, source: Path) -> None:
        """Continue the ledger beside a checkpoint.

        What was in flight and not yet counted when its process was killed is counted.
        """
        try:
            ledger = json.loads((source.parent / "ledger.json").read_bytes())
            self.ledger.load_state_dict(ledger)
            self._dumps.take_over_losses(ledger)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            logger.warning("the ledger beside %s is not used: %s", source, error)
            return
        if self.ledger.in_flight > 0:
            self.ledger.settle(Ending.KILLED, self.ledger.in_flight)

    async def end(self) -> None:
        """Save a last checkpoint, if checkpoints are saved, and release the folder."""
        self.ledger.tell()
        if self._is_begun:
            self.save(self._env.curr_step)
        if self._folder is not None:
            self._folder.release()
