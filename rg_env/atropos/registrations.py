"""Notes of registrations at the API, by which those of killed processes are ended.

    $XDG_STATE_HOME/reasoning_gym_environment/registrations/{random}.json

The API keeps an environment registered until the environment reports its end. A killed
process cannot do that, and if it had a minimum allocation, the API makes no more
batches. Therefore each process records how its registrations can be recognized before
it registers, and the next process that starts removes the registrations of dead ones.
The folder does not depend on settings, so the record is found whatever the next start
uses: other shards, another trainer, or no checkpoints.

A note is locked while its process lives, which the kernel ends with the process. Only
the kernel that gave the lock can tell, so a note that was written under another one (on
another machine with the same home, or before a reboot) proves nothing.

Mends B26 of docs/host_defects.md: what was killed stays registered for ever.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import platform
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger(__name__)

KEPT_S = 30 * 24 * 3600.0
"""So long a note without an owner is kept for an API that is not the one at hand."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_held: set[int] = set()
"""Descriptors of the notes of this process."""


def _let_go() -> None:
    """Release the parent's locks in a forked child, which may outlive the parent."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)


def _kernel() -> str:
    """Name the running kernel: of this machine, since it was started."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:  # not Linux
        return platform.node()


def _folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    base = Path(os.path.expanduser(state))  # noqa: PTH111 - Path raises without a home
    return base / "reasoning_gym_environment" / "registrations"


class RegistrationNote:
    """The note of this process' registrations, locked from its creation on.

    Args:
        share: By which the API's status tells a registration from all others.

    Raises:
        OSError: The disk refuses it, or has no locks.
    """

    def __init__(self, share: float) -> None:
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = folder / f"{uuid.uuid4().hex}.json"
        part = self._path.with_suffix(".part")
        self._held = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Nobody sees it before it is whole and locked.
            fcntl.flock(self._held, fcntl.LOCK_EX)
            os.write(self._held, json.dumps({"on": _kernel(), "share": share}).encode())
            part.rename(self._path)
        except OSError:
            os.close(self._held)
            part.unlink(missing_ok=True)
            raise
        _held.add(self._held)

    def remove(self) -> None:
        """Remove it, as the API knows of the end; may be called twice."""
        if self._held in _held:
            _held.remove(self._held)
            self._path.unlink(missing_ok=True)
            os.close(self._held)


def of_killed_processes() -> dict[Path, float]:
    """Return the shares in the notes of processes that are proved dead, by note."""
    return dict(_read_killed())


def _read_killed() -> Iterator[tuple[Path, float]]:
    kernel = _kernel()
    for path in sorted(_folder().glob("*.json")):
        # Gone meanwhile, without locks, or empty after the machine broke down.
        with contextlib.suppress(OSError, ValueError), path.open("rb") as note:
            try:
                # Several that start at one time may read it.
                fcntl.flock(note, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            if os.fstat(note.fileno()).st_mtime < time.time() - KEPT_S:
                path.unlink(missing_ok=True)
                continue
            noted = json.load(note)
            if noted["on"] == kernel:
                yield path, noted["share"]
