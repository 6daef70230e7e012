"""Which groups and numbers of a run are written, on a thread of their own.

One thread does all the encoding and writing, so the calls keep their order, and a
caller that is cancelled leaves its group to be written all the same.
"""

from __future__ import annotations

import asyncio
import logging
import math
import numbers
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from rg_env.off_loop import release_gil
from rg_env.rollouts.dump_writer import DumpWriter
from rg_env.rollouts.group import Group, is_worth_keeping
from rg_env.rollouts.json_encoding import readable
from rg_env.rollouts.line_file import LineFile, recover_unfinished

logger = logging.getLogger(__name__)

T = TypeVar("T")

AT_ONCE_S = 2.0
"""For a disk at a hurried end; on a busy machine half a second was too short."""

MAX_WAITING_NUMBERS = 1000
"""Lines of numbers that wait for a disk that hangs; about 2 MB."""

GROUPS_PER_FILE = {
    "reasoning_gym_environment_rollouts": 100,
    "reasoning_gym_environment_FAILED_rollouts": 50,
    "reasoning_gym_environment_UNSENT_rollouts": 50,
}
"""What the names of the files begin with, and how many groups fill one."""

METRICS_FOLDER, UNSENT_FOLDER = "metrics", "unsent"
"""The folders, beside the files of groups, of what has another form."""


class Dumps:
    """The dump files of a run: good groups, failed ones, and those that were not sent.

    Args:
        keep_good: Whether groups with a rollout above the threshold are dumped.
        keep_failed: Whether groups in which every score is 0 are dumped.
        threshold: In [0, 1]; 1.0 means perfect.
        keep_numbers: Whether the numbers of every log are written.

    Attributes:
        unsent: Writes, whatever the settings, what did not reach the API.
    """

    def __init__(
        self,
        folder: Path,
        *,
        keep_good: bool,
        keep_failed: bool,
        threshold: float,
        keep_numbers: bool = False,
    ) -> None:
        self._keep_good = keep_good
        self._keep_failed = keep_failed
        self._threshold = threshold
        self._is_closed = False
        self._lost_before = 0
        self._step: dict[str, int] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dumps")
        run_uuid = str(uuid.uuid4())
        self._all = [
            DumpWriter(folder, stem, run_uuid, groups_per_file, release_gil)
            for stem, groups_per_file in GROUPS_PER_FILE.items()
        ]
        self.saved, self.failed, self.unsent = self._all
        self._keep_numbers = keep_numbers
        self._numbers_given = self._numbers_taken = 0  # each by one thread
        self.place(folder, run_uuid)

    def place(self, folder: Path, run_uuid: str) -> None:
        """Write later files in this folder, under this name of the run.

        In the folder itself lie groups with their rollouts, and nothing else.
        """
        for writer in self._all:
            writer.folder, writer.run_uuid = folder, run_uuid
        self.unsent.folder = folder / UNSENT_FOLDER
        if not self._numbers_given:
            self.put_numbers(folder / METRICS_FOLDER / f"{run_uuid}_metrics.jsonl")

    def put_numbers(self, path: Path) -> None:
        """Have the numbers written elsewhere; before the first ones are."""
        self._numbers = MetricsFile(path)

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        future = self._thread.submit(function, *args)
        return await asyncio.shield(asyncio.wrap_future(future))

    async def recover(self) -> None:
        """Complete what killed processes left in the folder."""
        for folder in self.saved.folder, self.unsent.folder:
            for path in await self._run(recover_unfinished, folder):
                logger.warning("completed %s, which a killed process left", path)

    async def record(self, group: Group, versions: Mapping[str, str]) -> None:
        """Write a group to the files that want it; on disk when this returns."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")

        line = {**group.line(versions, now), **self._step}

        def write(writer: DumpWriter) -> None:
            writer.write(line)

        if self._keep_good and is_worth_keeping(group.scores, self._threshold):
            await self._run(write, self.saved)
        if self._keep_failed and not any(group.scores):
            await self._run(write, self.failed)

    async def keep_unsent(self, group: Mapping[str, Any], reason: str) -> None:
        """Write a group as the trainer would have got it, and why it did not."""
        line = {"item_id": group.get("task"), "unsent_because": reason, **group}
        await self._run(self.unsent.write, line)

    def note_numbers(
        self,
        step: int,
        kind: str,
        values: Mapping[str, Any],
        alarms: Sequence[Any] = (),
    ) -> None:
        """Have the numbers of a log written, see `line_of`; this waits for no disk."""
        self._step = {"step": step}
        waiting = self._numbers_given - self._numbers_taken
        is_open = self._keep_numbers and not self._is_closed
        if is_open and waiting < MAX_WAITING_NUMBERS:
            self._numbers_given += 1
            line = line_of(step, kind, values, alarms)
            self._thread.submit(self._write_numbers, line)

    def _write_numbers(self, line: bytes) -> None:
        self._numbers.write(line)
        self._numbers_taken += 1

    async def finish(self, writer: DumpWriter) -> None:
        """Complete the file that a writer is writing."""
        await self._run(writer.finish)

    def _close_all(self) -> None:
        for writer in self._all:
            writer.close()
        self._numbers.close()

    async def close(self) -> None:
        """Complete all files after what is still being written; may be called twice."""
        if not self._is_closed:
            self._is_closed = True
            await self._run(self._close_all)
            await asyncio.to_thread(self._thread.shutdown)

    def close_at_once(self) -> None:
        """Complete all files, if the disk takes them at once; for a hurried end."""
        # On the thread: a writer takes one call at a time, and one may be under way.
        self._thread.submit(self._close_all).result(AT_ONCE_S)

    @property
    def groups_lost(self) -> int:
        """Groups that neither disk nor memory took, in former processes as well."""
        return self._lost_before + sum(writer.groups_lost for writer in self._all)

    @property
    def groups_waiting(self) -> int:
        """Groups in memory that the disk has not taken yet."""
        return sum(writer.groups_waiting for writer in self._all)

    def losses(self) -> dict[str, int]:
        """Return what a killed process would leave to be counted."""
        return {
            "dump_groups_lost": self.groups_lost,
            "dump_groups_waiting": self.groups_waiting,
        }

    def take_over_losses(self, ledger: Mapping[str, Any]) -> None:
        """Continue a former process' `losses`; what waited there is lost now."""
        waiting = int(ledger.get("dump_groups_waiting", 0))
        self._lost_before = int(ledger.get("dump_groups_lost", 0)) + waiting
        if waiting:
            logger.error("%d groups that waited for the disk were lost", waiting)


# -- the numbers of every log ----------------------------------------------------------


def line_of(
    step: int, kind: str, values: Mapping[str, Any], alarms: Sequence[Any] = ()
) -> bytes:
    """Return a line of the file of numbers: of the values those that are finite.

    The names are those of W&B, without the one that the framework puts before them.

        {"step": 12, "time": "2026-01-31T12:00:00+00:00", "kind": "serve",
         "train/mean_score": 0.54, "outcomes/right": 0.51, ...,
         "alarms": [["no_variance", "gcd", 1, "32 groups in a row of ...", ["..."]]]}

    `alarms`, where one has rung since the last line, has all of the run: name, task,
    count, newest sentence and examples.
    """
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    line: dict[str, Any] = {"step": step, "time": now, "kind": kind}
    for name, value in values.items():
        if isinstance(value, numbers.Real) and math.isfinite(value):
            number = float(value)  # of numpy perhaps
            # A number cannot replace `step`, `time` or `kind`.
            line.setdefault(name, int(number) if number.is_integer() else number)
    if alarms:
        line["alarms"] = alarms
    return readable(line) + b"\n"


class MetricsFile:
    """Appends lines, each on disk when `write` returns; what is refused is lost.

    Calls block on the disk, so they belong off the event loop, one at a time.

    Args:
        path: The file, made with its folder at the first line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: LineFile | None = None
        self._has_refused = False

    def write(self, line: bytes) -> None:
        """Append a line; that the disk refuses one is said once."""
        try:
            self._file = self._file or LineFile(self.path)
            self._file.restore()
            self._file.append(line)
        except OSError as error:
            if not self._has_refused:
                logger.error("%s takes no metrics (%s)", self.path, error)
            self._has_refused = True

    def close(self) -> None:
        """Close it; may be called twice."""
        if self._file is not None:
            self._file.close()
            self._file = None
