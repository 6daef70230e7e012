"""Checkpoint files: one JSON object for each saved step, written whole or not at all.

    {checkpoint_dir}/env_checkpoints/{name}/step-{step}.json

The folder and the names are the framework's. Mends B10 of docs/host_defects.md: there a
file is written in place, and any key of it becomes an attribute.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from rg_env.errors import SettingError

VERSION = 2

OF_ORIGINAL = {
    *("iter", "rng_state", "completion_lengths", "task_complexity_levels"),
    *("processed_item_count", "save_file_batch_num", "task_performance_history"),
    *("failed_processed_item_count", "failed_save_file_batch_num", "task_group_counts"),
}
"""Keys of a checkpoint of the original. Source: atropos 296a0bc, save_checkpoint()."""

logger = logging.getLogger(__name__)

_STEP = re.compile(r"step-(\d+)\.json")


class BadCheckpointError(SettingError):
    """A checkpoint that cannot be used; the text says which file and why."""


def path(folder: str, name: str, step: int) -> Path:
    """Return where the checkpoint of a step is."""
    return Path(folder) / "env_checkpoints" / name / f"step-{step}.json"


def write(target: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint atomically: whatever happens, the old file or the new one.

    Raises:
        OSError: The disk refuses it; the old file stays.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    # One name for all steps: what a killed process left is written over.
    part = target.with_name(".part")
    try:
        with part.open("w", encoding="utf-8") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def newest(folder: str, name: str, step: int) -> Path | None:
    """Return the checkpoint of the latest step that is not after `step`, if any."""
    found = {}
    for candidate in path(folder, name, 0).parent.glob("step-*.json"):
        match = _STEP.fullmatch(candidate.name)
        if match and int(match.group(1)) <= step:
            found[int(match.group(1))] = candidate
    return found[max(found)] if found else None


def read(source: Path) -> dict[str, Any]:
    """Read a checkpoint.

    Raises:
        BadCheckpointError: The file is broken or holds something else.
    """
    try:
        state = json.loads(source.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadCheckpointError(f"{source} cannot be read: {error}") from error
    if not isinstance(state, dict):
        raise BadCheckpointError(f"{source} holds no checkpoint")
    return state


class Stateful(Protocol):
    """An object whose state is part of a checkpoint."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain values."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state.

        Raises:
            ValueError: It has another form.
        """


def _digest(settings: Mapping[str, Any]) -> str:
    text = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def collect(
    parts: Mapping[str, Stateful], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the combined state of all owners.

    It includes the settings that affect the items, so that the checkpoint of a
    different run is detected.
    """
    states = {name: part.state_dict() for name, part in parts.items()}
    own = {"version": VERSION, "settings_hash": _digest(settings)}
    return {**own, "settings": dict(settings), **states}


def _refuse_other_run(
    state: Mapping[str, Any], settings: Mapping[str, Any], source: Path
) -> None:
    if state.get("version") != VERSION:
        raise BadCheckpointError(
            f"{source} has version {state.get('version')!r}, needed is {VERSION};"
            " move it away to begin anew"
        )
    then = state.get("settings")
    if not isinstance(then, dict):
        raise BadCheckpointError(f"{source} does not say which settings it is of")
    if state.get("settings_hash") != _digest(then):
        raise BadCheckpointError(f"{source} was changed: its settings and hash differ")
    names = then.keys() | settings.keys()
    different = sorted(n for n in names if then.get(n) != settings.get(n))
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
    """
    groups = state.get("task_group_counts", {})
    levels = state.get("task_complexity_levels", {}).items()
    names = {"batch_num": "save_file_batch_num", "groups_total": "processed_item_count"}
    return {
        "items": {"drawn": state["iter"], "outstanding": [], "asked": {}},
        "curriculum": {
            "tasks": {
                t: {"level": x, "counted_from": None}
                for t, x in levels
                if groups.get(t)
            }
        },
        "saved": {ours: state.get(its, 0) for ours, its in names.items()},
        "failed": {ours: state.get(f"failed_{its}", 0) for ours, its in names.items()},
        "data": {key: v for key, v in state.items() if key not in OF_ORIGINAL},
    }


def restore(
    parts: Mapping[str, Stateful], settings: Mapping[str, Any], source: Path
) -> dict[str, Any]:
    """Load a checkpoint, also one of the original, into the owners: all or none.

    Returns:
        What a subclass has saved with it.

    Raises:
        BadCheckpointError: The file is broken, of another version or run, or lacks
            a part.
    """
    state = read(source)
    before = {name: part.state_dict() for name, part in parts.items()}
    is_of_original = "version" not in state and "iter" in state
    if is_of_original:
        logger.warning("%s is of the original, whose items were others", source)
    else:
        _refuse_other_run(state, settings, source)
    name = "data"
    try:
        state = {**before, **_of_original(state)} if is_of_original else state
        own = dict(state.get("data", {}))
        for name, part in parts.items():
            part.load_state_dict(state[name])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        for each, part in parts.items():
            part.load_state_dict(before[each])
        raise BadCheckpointError(f"{source}: {name}: {error!r}") from error
    return own
