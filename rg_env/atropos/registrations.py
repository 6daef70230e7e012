"""Notes of registrations at the API, by which those of killed processes are ended.

    $XDG_STATE_HOME/reasoning_gym_environment/registrations/{boot}/{API}/{number}

The framework's API keeps an environment registered until the environment reports its
end. A killed process cannot do that, and if it had a minimum allocation, the API makes
no more batches. Therefore a process locks an empty file with the number of its
registration, and the next one that registers ends those whose files no process holds.
The folder does not depend on settings, so they are found whatever the next start uses:
other shards, another trainer, or no checkpoints. A file from before a reboot, or from
another machine with the same home, proves nothing: the kernel's boot is in its path.

If the API was restarted meanwhile, it may have given the number to an environment of
another machine, which then loses its share of a batch, but none of its groups. Whoever
registers for a second time, or gets a smaller number, knows that the API was restarted.

Mends B26 of docs/host_defects.md: what was killed stays registered for ever.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_held: set[Path] = set()
"""The notes of this process. To open and close one would end the lock of this process,
which is of a process and not of a file so that no forked child inherits it."""


def _folder(api: str) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    base = Path(os.path.expanduser(state))  # noqa: PTH111 - Path raises without a home
    try:
        boot = _BOOT_ID.read_text().strip()
    except OSError:  # not Linux
        boot = platform.node()
    notes = base / "reasoning_gym_environment" / "registrations"
    return notes / boot / urllib.parse.quote(api, safe="")


class RegistrationNote:
    """The note of a registration of this process, locked until it ends.

    Args:
        api: The API's URL, without a secret.
        env_id: The number that the API has given.

    Raises:
        OSError: The disk refuses it, or has no locks.
    """

    def __init__(self, api: str, env_id: int) -> None:
        self._path = _folder(api) / str(env_id)
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = self._path.open("w")
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise
        _held.add(self._path)

    def remove(self) -> None:
        """Remove it, as the API knows of the end; may be called twice."""
        if self._path in _held:
            self._path.unlink(missing_ok=True)
            self._file.close()
            _held.remove(self._path)


def of_killed_processes(api: str) -> Iterator[tuple[int, Path]]:
    """Yield the numbers in notes of dead processes, and the notes.

    A note is locked while it is the newest one, so of several processes that start at
    one time, one ends the registration.
    """
    for path in sorted(_folder(api).glob("*")):
        if path.name.isdigit() and path.is_file() and path not in _held:
            # An exclusive `lockf` needs a file that is open for writing.
            with contextlib.suppress(OSError), path.open("r+") as note:
                fcntl.lockf(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield int(path.name), path
