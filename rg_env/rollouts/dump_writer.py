"""Dump files: one JSON object a line, each line on disk when its group is accepted.

    reasoning_gym_environment_rollouts_{uuid}_{batch:04d}.jsonl.part    being written
    reasoning_gym_environment_rollouts_{uuid}_{batch:04d}.jsonl         complete

"On disk" survives the end of the process, not the loss of power: only a complete file
is synced. A file is complete when it holds `groups_per_file` groups or the run ends;
none is ever overwritten.

If the disk is full or read-only, or the folder is gone, groups wait in memory up to a
limit, and are written to one file when that is possible again; groups beyond the limit
are counted as lost. A run that resumes a killed one also counts the groups that the
killed run wrote after its last checkpoint.

Calls block on the disk, so they belong off the event loop, one at a time for one
writer. `state_dict` alone may be called beside them.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rg_env.off_loop import keep_gil
from rg_env.rollouts.json_encoding import encode_line
from rg_env.rollouts.line_file import PART_SUFFIX, LineFile, count_left

logger = logging.getLogger(__name__)

MAX_WAITING_GROUPS = 200
"""Groups held in memory while the disk takes none; about 200 MB at 8k tokens."""

MAX_WAITING_BYTES = 2**29
MAX_FILE_BYTES = 2**28
"""A file of megabyte texts is complete before it holds all its groups, which stay in
memory as long as it is written."""

PROGRESS_EVERY_GROUPS = 10


class _Place(NamedTuple):
    """Where a writer is: replaced whole, since a checkpoint reads it too."""

    batch_num: int
    groups_total: int
    groups_in_file: int = 0


class DumpWriter:
    """Writes the groups of one kind into numbered files.

    Args:
        stem: What the file names begin with.
        run_uuid: Names the process, so that several can share a folder.
        groups_per_file: Groups in a complete file, at least 1.
        release_gil: Called again and again while a long group is encoded.

    Attributes:
        groups_lost: Groups that neither the disk nor the bounded memory took, or that
            JSON cannot hold.
    """

    def __init__(
        self,
        folder: Path,
        stem: str,
        run_uuid: str,
        groups_per_file: int,
        release_gil: Callable[[], None] = keep_gil,
    ) -> None:
        self.folder = folder
        self.run_uuid = run_uuid
        self._stem = stem
        self._groups_per_file = groups_per_file
        self._most_kept = groups_per_file + MAX_WAITING_GROUPS
        self._release_gil = release_gil
        self._place = _Place(0, 0)
        self._file: LineFile | None = None
        self._written = 0  # groups of the file that are on disk
        self._waiting_bytes = 0
        self._disk_refuses = False
        self._lost_told = 0
        self._buffer: list[dict[str, Any]] = []
        self.groups_lost = 0

    @property
    def buffer(self) -> list[dict[str, Any]]:
        """The groups of the file, and those that a caller adds to be written next."""
        return self._buffer

    @buffer.setter
    def buffer(self, groups: list[dict[str, Any]]) -> None:
        self._buffer[self._kept :] = groups

    @property
    def batch_num(self) -> int:
        """Number of the file being written, from 0; settable for the next file."""
        return self._place.batch_num

    @batch_num.setter
    def batch_num(self, number: int) -> None:
        self._place = self._place._replace(batch_num=number)

    @property
    def groups_total(self) -> int:
        """Groups accepted and not lost since, those of continued runs included.

        Of groups that a caller appends to `buffer`, only those that it adds here.
        """
        return self._place.groups_total

    @groups_total.setter
    def groups_total(self, number: int) -> None:
        self._place = self._place._replace(groups_total=number)

    def _count(self, change: int) -> None:
        # A caller may have appended groups without counting them.
        total = max(0, self.groups_total + change)
        self._place = _Place(self.batch_num, total, min(self._in_file, total))

    @property
    def groups_waiting(self) -> int:
        """Groups in memory that are not on disk yet."""
        return len(self.buffer) - self._kept

    @property
    def _kept(self) -> int:
        """Groups on disk that are in the buffer; the oldest of a file may be gone."""
        return min(self._written, self._most_kept)

    @property
    def _in_file(self) -> int:
        """Groups of the file, those that wait included."""
        return self._written + self.groups_waiting

    @property
    def _is_full(self) -> bool:
        size = 0 if self._file is None else self._file.end
        return self._in_file >= self._groups_per_file or size > MAX_FILE_BYTES

    @property
    def _path(self) -> Path:
        """The name that the file being written will have when it is complete."""
        name = f"{self._stem}_{self.run_uuid}_{self.batch_num:04d}.jsonl"
        return self.folder / name

    # -- groups ------------------------------------------------------------------------

    def write(self, group: dict[str, Any]) -> None:
        """Accept a group; it is on disk when this returns, unless the disk refuses."""
        self.buffer.append(group)
        self._count(1)
        self._flush()
        if self.groups_waiting:
            self._keep_waiting()
        elif self._is_full:
            self.finish()
        elif self._in_file and self._in_file % PROGRESS_EVERY_GROUPS == 0:
            of = (self._in_file, self._groups_per_file)
            logger.info("%s: %d of %d groups", self._path.name, *of)

    def _keep_waiting(self) -> None:
        """Leave the newest group in memory, if there is room."""
        # Encoded to know its size, and whether it can be written at all.
        line = self._line_of(-1)
        if line is None:
            return
        room = MAX_WAITING_BYTES - self._waiting_bytes
        if self.groups_waiting > MAX_WAITING_GROUPS or len(line) > room:
            self._lose(-1)
        else:
            self._waiting_bytes += len(line)

    def _line_of(self, place: int) -> bytes | None:
        """Encode a group of the buffer; one that JSON cannot hold is lost."""
        try:
            return encode_line(self.buffer[place], self._release_gil)
        except (TypeError, ValueError, RecursionError) as error:
            logger.error("%s: a group cannot be dumped: %s", self._path.name, error)
            self._lose(place)
            return None

    def _lose(self, place: int) -> None:
        del self.buffer[place]
        self.groups_lost += 1
        self._count(-1)

    def finish(self) -> Path | None:
        """Complete the file being written and begin the next.

        Returns:
            The complete file; None where there was nothing to write or the disk
            refuses, in which case the groups stay in `buffer`.
        """
        if self.buffer:
            self._flush()
        if self.groups_waiting or self._file is None:
            return None
        in_file = self._in_file
        if not in_file:  # it was opened, and the disk took no line
            self._file.close()
            self._file = None
            return None
        try:
            complete = self._file.complete()
        except OSError as error:
            self._say_refused(error)
            return None
        self._file = None
        logger.info("wrote %d groups to %s", in_file, complete)
        self._place = _Place(self.batch_num + 1, self.groups_total)
        self.buffer.clear()
        self._written = 0
        self._say_accepted()
        return complete

    def close(self) -> None:
        """Complete the file being written; what the disk refuses is counted lost."""
        self.finish()
        if self.groups_waiting:
            # Without them, the file can be completed.
            while self.groups_waiting:
                self._lose(-1)
            self.finish()
        if self._file is not None:
            self._file.close()
            self._file = None
        if self.groups_lost > self._lost_told:
            logger.error("%s: %d groups were lost", self.folder, self.groups_lost)
            self._lost_told = self.groups_lost

    # -- the disk ----------------------------------------------------------------------

    def _flush(self) -> None:
        """Write the groups that are not on disk yet, each as one whole line."""
        try:
            file = self._current_file()
            while self.groups_waiting:
                line = self._line_of(self._kept)
                if line is not None:  # otherwise the buffer is shorter by one now
                    file.append(line)
                    self._written += 1
                    if self._written > self._most_kept:  # it cannot be completed
                        del self.buffer[0]
        except OSError as error:
            self._say_refused(error)
            return
        self._waiting_bytes = 0
        # Whether the disk takes a full file is known when that is completed.
        if not self._is_full:
            self._say_accepted()

    def _current_file(self) -> LineFile:
        """Return the file being written, opened if need be."""
        if self._file is not None and not self._file.is_in_place:
            # Somebody removed it; the buffer holds what was in it.
            self._file.close()
            self._file = None
            gone, self._written = self._written - self._kept, 0
            self.groups_lost += gone
            self._count(-gone)
        if self._file is None:
            while self._path.exists():
                self._place = self._place._replace(batch_num=self.batch_num + 1)
            part = self._path.with_name(self._path.name + PART_SUFFIX)
            self._file = LineFile(part)
        return self._file

    def _say_refused(self, error: OSError) -> None:
        if not self._disk_refuses:
            logger.error(
                "%s takes no groups (%s); at most %d wait in memory, the next are lost",
                *(self.folder, error, MAX_WAITING_GROUPS),
            )
        self._disk_refuses = True

    def _say_accepted(self) -> None:
        if self._disk_refuses:
            now = (self.folder, self.groups_lost)
            logger.warning("%s: groups can be written again; %d were lost", *now)
        self._disk_refuses = False

    # -- state -------------------------------------------------------------------------

    def state_dict(self) -> dict[str, int | str]:
        """Return the counters, and which file holds what comes after them."""
        return {**self._place._asdict(), "run_uuid": self.run_uuid}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue the counters; a file being written is completed first.

        What the former process wrote after it was saved is counted in its files;
        what it had accepted and could not write is not.

        Raises:
            ValueError: A counter is missing or negative.
        """
        try:
            batch_num, total = (
                operator.index(state[k]) for k in ("batch_num", "groups_total")
            )
            in_file = operator.index(state.get("groups_in_file", 0))
            run_uuid = str(state.get("run_uuid", self.run_uuid))
        except (AttributeError, KeyError, TypeError):
            batch_num = total = in_file = -1
        if min(batch_num, in_file, total - in_file) < 0:
            raise ValueError(f"dump counters must be at least 0, found {state!r}")
        self.finish()
        left = count_left(self.folder, f"{self._stem}_{run_uuid}", batch_num)
        self._place = _Place(
            # After all files that were left: none is continued.
            max([batch_num, *(number + 1 for number in left)]),
            total - in_file + sum(left.values()) + self._in_file,
            self._in_file,
        )
