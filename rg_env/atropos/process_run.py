"""`process`: a number of groups as rows, several at a time, without a trainer.

A row is the group as the framework writes it (tokens, masks, scores, messages, ...)
with what makes it useful: task, gold answer, extracted answers, outcomes, provenance.

Mends B14 of docs/host_defects.md: the framework samples one group at a time, ends with
status 0 if an item is missing, and drops groups of equal scores without a limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from atroposlib.envs.base import BaseEnv

from rg_env import patience
from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.atropos.groups_in_flight import Group, GroupsInFlight
from rg_env.atropos.lifetime import finish_or_cancel
from rg_env.inference.servers import Servers
from rg_env.items.run_items import RunItems
from rg_env.off_loop import off_loop, release_gil
from rg_env.reports.progress_bar import WorkProgress
from rg_env.rollouts.ledger import Ending
from rg_env.rollouts.line_file import LineFile, continued
from rg_env.rollouts.row_writer import RowWriter, settings_path
from rg_env.rollouts.shaping import has_variance
from rg_env.settings import kept_settings
from rg_env.settings.environment_settings import deciding
from rg_env.settings.setting_types import Decides
from rg_env.tasks.feedback import Feedback
from rg_env.tasks.recent_questions import digest
from rg_env.tasks.task_history import Count, Share

logger = logging.getLogger(__name__)

DECIDING = deciding(*set(Decides) - {Decides.NOTHING, Decides.EVAL_COMPLETIONS})
"""Settings of the environment that decide rows."""

SAID_FROM_MB = 500
"""A smaller file is read in a few seconds."""


@contextlib.contextmanager
def taking_over_rows(
    env: Any, config: ReasoningGymEnvConfig, *, with_tokens: bool
) -> Iterator[None]:
    """Replace the writer of the file that the framework opens inside, if any.

    Args:
        env: Gets the writer.
        config: Names the file, and afterwards the one that was free.
        with_tokens: Whether rows have token ids.
    """
    wanted = config.data_path_to_save_groups
    above = () if wanted is None else Path(wanted).parents
    made = [folder for folder in above if not folder.exists()]
    yield
    path = config.data_path_to_save_groups
    if env.jsonl_writer is None or path is None:
        env.jsonl_writer = None
        return
    env.jsonl_writer.close()
    env.jsonl_writer = RowWriter(LineFile(Path(path)), made)
    env.jsonl_writer.wanted = Path(wanted or path)
    env.jsonl_writer.with_tokens &= with_tokens


class ProcessRun:
    """One run of `process`.

    Args:
        env: Its hooks collect and deliver groups.
        groups: Those in flight.
        rows: The file.
        servers: When they give up, the run ends.
        made: What the run samples; None where a subclass samples its own items.

    Attributes:
        written: Rows in the file so far.
    """

    def __init__(
        self,
        env: BaseEnv,
        groups: GroupsInFlight,
        rows: RowWriter,
        servers: Servers,
        made: RunItems | None,
    ) -> None:
        self._env = env
        self._groups = groups
        self._rows = rows
        self._servers = servers
        self._made = made
        self._next_item_lock = asyncio.Lock()
        self._is_ending = False
        self._fruitless = 0
        self._begun = self.written = 0

    async def continue_rows(
        self, feedback: Feedback, settings: str, *, even_complete: bool
    ) -> None:
        """Continue the file of an ended run of the same settings, if there is one.

        Args:
            feedback: Learns again what its rows have taught.
            settings: What stands beside the file, as YAML.
            even_complete: Whether a file that has all its rows is taken as well.
        """
        total = self._env.n_groups_to_process
        if self._made is None:  # nothing makes the items of a subclass again
            self._rows.say_where()
            return
        self._rows.settings = settings
        left = await off_loop(
            resume_rows, self._rows, total, even_complete=even_complete
        )
        self._env.config.data_path_to_save_groups = str(self._rows.path)
        self._made.stream.sampled = left.sampled
        await off_loop(feedback.replay, left.results)
        self._begun = self.written = self._env.curr_step = len(left.results)

    async def write(self, at_once: int, title: str = "process") -> bool:
        """Write the rows that are missing; say whether none is missing any more.

        Args:
            at_once: Groups in flight.
            title: What it is called.
        """
        total: int = self._env.n_groups_to_process
        if self.written >= total:
            return True
        with WorkProgress(title, total, "groups", self.written) as progress:
            lanes = [
                asyncio.ensure_future(self._write_in_turn(total, progress))
                for _ in range(min(total - self.written, at_once))
            ]
            try:
                await asyncio.wait(lanes, return_when=asyncio.FIRST_EXCEPTION)
            finally:
                self._is_ending = True
                await finish_or_cancel(lanes)
                if self.written:  # else the reason of the end says enough
                    self._say_missing(total)
            errors = [lane.exception() for lane in lanes if not lane.cancelled()]
            for error in filter(None, errors):
                raise error
            if not self.written:
                self._say_missing(total)
        return self.written >= total

    def _say_missing(self, total: int) -> None:
        if self.written < total:
            then = "; the same command continues" if self.written else ""
            found = f"{self.written} of {total}"
            logger.error("only %s groups were written%s", found, then)

    def _may_begin(self, total: int) -> bool:
        if self._fruitless >= patience.FRUITLESS_GROUPS_IN_A_ROW:
            logger.error("%d groups in a row gave no row: ending", self._fruitless)
            self._is_ending = True
        is_over = self._is_ending or self._servers.gave_up.is_set()
        return self._begun < total and not is_over

    async def _write_in_turn(self, total: int, progress: WorkProgress) -> None:
        """Write groups one after the other until enough are begun."""
        while True:
            # Else other lanes would pass the check while this one awaits its item.
            async with self._next_item_lock:
                if not self._may_begin(total):
                    return
                if self._made is not None:
                    self._made.items.needed = total - self._begun
                group = await self._groups.next_group()
                self._begun += 1
            if group is not None and await self._write_one(group):
                self.written += 1
                self._env.curr_step = self.written
                self._fruitless = 0
                progress.advance()
                await self._env.wandb_log()
            else:
                self._begun -= 1  # another group takes its place
                # An earlier run had rows between those that it tried without one.
                catches_up = self._made and self._made.items.is_catching_up
                self._fruitless += not catches_up

    async def _write_one(self, group: Group) -> bool:
        """Work on a group; return whether a row was written."""
        await self._groups.work_on(
            group, do_send_to_api=False, abort_on_any_max_length_exceeded=False
        )
        return Ending.WRITTEN in group.endings


# -- the rows of an interrupted run ---------------------------------------------------


class ResumedRows(NamedTuple):
    """What a resumed run needs to know about the existing rows.

    Attributes:
        sampled: Global index to the task and the digest of the question of each item.
        results: Of each row what `Feedback.take` takes, in the order of the file.
    """

    sampled: dict[int, tuple[str, int]]
    results: list[tuple[str, float, float | None, bool]]


class _Row(msgspec.Struct):
    """What is read of a line."""

    index: Count
    task: str
    question: str
    level: Share | None
    scores: list[float]
    task_scores: Annotated[list[Share], msgspec.Meta(min_length=1)]


_decoder = msgspec.json.Decoder(_Row)


def _row(line: bytes) -> _Row:
    """Return what is read of a line, ValueError where it is no row."""
    try:
        return _decoder.decode(line)
    except msgspec.DecodeError:  # half a character, which json takes
        return msgspec.convert(json.loads(line), _Row)


def read_resumed(path: Path) -> ResumedRows:
    """Read a file of rows; lines that are none are passed over, which is said.

    Raises:
        OSError: It cannot be read.
    """
    left, damaged = ResumedRows({}, []), 0
    if (megabytes := path.stat().st_size // 2**20) >= SAID_FROM_MB:
        logger.info("reading %s, %d MB", path, megabytes)
    with path.open("rb") as lines:
        for line in lines:
            release_gil()
            try:
                row = _row(line)
            except (ValueError, RecursionError):
                damaged += 1
                continue
            mean_score = sum(row.task_scores) / len(row.task_scores)
            result = row.task, mean_score, row.level, has_variance(row.scores)
            left.results.append(result)
            left.sampled[row.index] = row.task, digest(row.question)
    if damaged:
        logger.warning("%s: %d lines are no rows", path, damaged)
    return left


def resume_rows(
    rows: RowWriter, total: int, *, even_complete: bool = False
) -> ResumedRows:
    """Continue the file of an earlier run, if there is one.

    The name in the settings is tried first, then the numbered names that exist. The log
    says which file is continued, or why the first one is not. This blocks on the disk.

    Args:
        rows: Goes to that file, if its settings are the same.
        total: Rows that are asked for.
        even_complete: Whether a file that has them is taken as well.
    """
    most = math.inf if even_complete else total
    first: OSError | None = None
    for path in _taken_names(rows):
        try:
            file, left = _opened(path, rows.settings or "", most)
        except OSError as why:
            first = first or why
            continue
        rows.continue_in(file)
        there = len(left.results)
        logger.info("continuing %s: rows written %d, wanted %d", path, there, total)
        return left
    if first is not None:
        logger.info("rows go to %s: %s", rows.path, first)
    return ResumedRows({}, [])


def _taken_names(rows: RowWriter) -> Iterator[Path]:
    """Yield the names that were taken when that of the rows was chosen."""
    wanted = rows.wanted
    names = (wanted.with_stem(f"{wanted.stem}_{n}") for n in itertools.count(1))
    every = itertools.chain([wanted], names)
    return itertools.takewhile(lambda path: path != rows.path, every)


def _opened(path: Path, settings: str, most: float) -> tuple[LineFile, ResumedRows]:
    """Return a file that can be continued, locked, and its rows.

    Raises:
        FileExistsError: It is of another run, or complete.
        OSError: It cannot be read or written, or another process writes it.
    """
    why = kept_settings.why_not(settings_path(path), settings, DECIDING)
    if why and path.stat().st_size:
        raise FileExistsError(f"{path} {why}")
    # Locked before it is read: nobody adds rows in between.
    file = continued(path)
    with contextlib.ExitStack() as undo:
        undo.callback(file.close)
        left = read_resumed(path)
        if len(left.results) >= most:
            raise FileExistsError(f"{path} is complete ({len(left.results)} rows)")
        if file.end and not left.results:
            raise FileExistsError(f"{path} has no row that could be continued")
        undo.pop_all()
    return file, left
