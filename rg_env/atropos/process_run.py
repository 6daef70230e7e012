"""`process`: a number of groups as rows, several at a time, without a trainer.

A row is the group as the framework writes it (tokens, masks, scores, messages, ...)
with what makes it useful: task, gold answer, extracted answers, outcomes, provenance.

Mends B14 of docs/host_defects.md: the framework samples one group at a time, ends with
status 0 if an item is missing, and drops groups of equal scores without a limit.
"""

from __future__ import annotations

import asyncio
import logging

from atroposlib.envs.base import BaseEnv

from rg_env import patience
from rg_env.atropos.groups_in_flight import Group, GroupsInFlight
from rg_env.atropos.lifetime import finish_or_cancel
from rg_env.atropos.rows import RowWriter, resume_rows
from rg_env.inference.servers import Servers
from rg_env.items.run_stream import RunStream
from rg_env.off_loop import off_loop
from rg_env.reports.terminal import WorkProgress
from rg_env.rollouts.ledger import Ending
from rg_env.tasks.feedback import Feedback

logger = logging.getLogger(__name__)


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
        made: RunStream | None,
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
        self._made.sampled = left.sampled
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
                    self._made.needed = total - self._begun
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
                catches_up = self._made and self._made.is_catching_up
                self._fruitless += not catches_up

    async def _write_one(self, group: Group) -> bool:
        """Work on a group; return whether a row was written."""
        await self._groups.work_on(
            group, do_send_to_api=False, abort_on_any_max_length_exceeded=False
        )
        return Ending.WRITTEN in group.endings
