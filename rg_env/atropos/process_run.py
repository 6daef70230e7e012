"""`process` and `evaluate`, which need no trainer.

Mends B14 (one group at a time, an end with status 0 when an item is missing, requests
for ever when scores are equal) and B15 (no W&B run, no close).
"""

from __future__ import annotations

import asyncio
import logging

from rg_env.atropos.lifetime import EXIT_FAILED, finish_or_cancel
from rg_env.atropos.serve_loop import ServingEnv
from rg_env.errors import SettingError
from rg_env.reports.progress_bar import WorkProgress

logger = logging.getLogger(__name__)

MAX_FRUITLESS_GROUPS = 200
"""Groups in a row that give no row before `process` ends with a failure."""


class ProcessingEnv(ServingEnv):
    """An environment that also writes groups and evaluates without a trainer.

    Attributes:
        process_mode: Whether `process` or `evaluate` runs; they give up in time.
        n_groups_to_process: Rows that `process` writes.
        group_size_to_process: Rollouts of each.
    """

    process_mode = False
    _is_ending = False
    n_groups_to_process: int
    group_size_to_process: int

    def _gives_up(self) -> bool:
        """Say whether waiting for the inference servers has taken too long."""
        return False

    async def process_manager(self) -> None:
        """`process`: write a number of groups, several at a time."""
        self.process_mode = True
        self.config.group_size = self.group_size_to_process
        await self._run_to_its_end(self._process())

    async def _process(self) -> None:
        if self.n_groups_to_process < 1:
            raise SettingError(
                "env.total_steps: `process` writes that many groups, at least 1, found"
                f" {self.n_groups_to_process}"
            )
        await self._set_up_alone()
        self._next_item_lock = asyncio.Lock()
        self._row_lock = asyncio.Lock()
        self.curr_step = self._begun = self._fruitless = 0
        total = self.n_groups_to_process
        with WorkProgress("process", total, "groups") as progress:
            lanes = [
                asyncio.ensure_future(self._process_lane(progress))
                for _ in range(min(total, self.max_num_workers))
            ]
            try:
                await asyncio.wait(lanes, return_when=asyncio.FIRST_EXCEPTION)
            finally:
                self._is_ending = True
                await finish_or_cancel(lanes)
            for lane in lanes:
                self._end_of(lane)
        if self.curr_step < total:
            self.exit_status = EXIT_FAILED
            logger.error("only %d of %d groups were written", self.curr_step, total)

    def _end_of(self, lane: asyncio.Future[None]) -> None:
        """Read how a lane ended; a disk that takes no row is said in a line."""
        try:
            lane.result()
        except OSError as error:
            path = self.config.data_path_to_save_groups
            logger.error("env.data_path_to_save_groups: %s: %s", path, error)

    async def _set_up_alone(self) -> None:
        await self.setup()
        if self.config.use_wandb:
            await self._start_wandb(self.config.wandb_name or self.name)

    def _may_begin(self) -> bool:
        if self._fruitless == MAX_FRUITLESS_GROUPS:
            logger.error("%d groups in a row gave no row: ending", self._fruitless)
            self._fruitless += 1
        is_fruitless = self._fruitless > MAX_FRUITLESS_GROUPS
        is_begun = self._begun >= self.n_groups_to_process
        may_not = is_fruitless or is_begun or self._is_ending or self._gives_up()
        return not may_not

    async def _process_lane(self, progress: WorkProgress) -> None:
        """Process groups one after the other until enough are begun."""
        while self._may_begin():
            self._begun += 1
            if await self._process_group():
                self.curr_step += 1
                self._fruitless = 0
                progress.advance()
                await self.wandb_log()
            else:
                self._begun -= 1
                self._fruitless += 1

    async def _process_group(self) -> bool:
        """Collect and write one group; say whether a row was written."""
        async with self._next_item_lock:
            item = self.backlog.pop() if self.backlog else await self.get_next_item()
        if item is None:
            return False
        group = await self._collected(item)
        if group is None:
            return False
        async with self._row_lock:  # the row that is counted is this group's
            rows_before = self.jsonl_writer.rows
            await self.handle_send_to_api(
                group,
                item,
                do_send_to_api=False,
                abort_on_any_max_length_exceeded=False,
            )
            return bool(self.jsonl_writer.rows > rows_before)

    async def _run_evaluate(self) -> None:
        """`evaluate`: one evaluation."""
        self.process_mode = True
        await self._run_to_its_end(self._evaluate_alone())

    async def _evaluate_alone(self) -> None:
        await self._set_up_alone()
        await self.evaluate()
        await self.wandb_log({})
