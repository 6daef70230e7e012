"""`process` and `screen`: write a number of groups as rows, without a trainer.

Mends B14 of docs/host_defects.md: the framework samples one group at a time, ends with
status 0 if an item is missing, and drops groups of equal scores without a limit.
"""

from __future__ import annotations

import logging
from typing import Any

from rg_env.executor import in_thread
from rg_env.results.result_file import settings_text
from rg_env.results.run_metrics import metrics_path
from rg_env.results.terminal import WorkProgress
from rg_env.run.group import Group
from rg_env.run.group_loop import Run, Window
from rg_env.run.ledger import Ending

logger = logging.getLogger(__name__)

# After this many groups in a row without a row, the command fails.
MAX_GROUPS_WITHOUT_ROW = 200


class Processing:
    """One run of `process`, or of `screen`.

    Args:
        env: The environment; its `curr_step` counts the rows in the file.
        run: The run whose sinks write the rows.
        kind: "process" or "screen", the title of the progress bar.
    """

    def __init__(self, env: Any, run: Run, kind: str) -> None:
        self._env = env
        self._run = run
        self._kind = kind
        self._window = Window()
        self._groups_without_row = 0

    async def write(self) -> None:
        """Write the rows that the file lacks.

        If some are still missing at the end, the command fails.
        """
        env = self._env
        await self._continue_rows()
        env._dumps.set_metrics_path(metrics_path(env.jsonl_writer.path))
        if self._is_short:
            await self._write_rows()
        if self._is_short:
            env._lifetime.fail()

    async def _continue_rows(self) -> None:
        """Continue the file of an earlier run with the same settings, if any."""
        env = self._env
        rows = env.jsonl_writer
        if env._items is None:  # items of a subclass cannot be made again
            return
        settings = settings_text(env.config, env._servers.clients, env._dumps.versions)
        # `screen` needs the results of a complete file too.
        env._items.sampled, results = await in_thread(
            rows.resume,
            settings,
            env.n_groups_to_process,
            even_complete=self._kind == "screen",
        )
        env.config.data_path_to_save_groups = str(rows.path)
        for result in results:
            env._feedback.take(*result)
        env.curr_step = len(results)

    async def _write_rows(self) -> None:
        """Write groups until the file is complete.

        This ends early if the servers were given up, if no item is left, or if too many
        groups in a row gave no row.
        """
        env = self._env
        total = env.n_groups_to_process
        with WorkProgress(self._kind, total, "groups", env.curr_step) as self._progress:
            try:
                await self._window.run(self._run, self._write_group, self._may_begin)
            finally:
                if self._is_short:
                    logger.error(
                        "only %d of %d groups were written; run the same command again"
                        " to continue",
                        env.curr_step,
                        total,
                    )

    @property
    def _is_short(self) -> bool:
        return bool(self._env.curr_step < self._env.n_groups_to_process)

    @property
    def _missing(self) -> int:
        """The number of rows that are missing, without those of groups in flight."""
        env = self._env
        in_flight = len(self._window.workers)
        return int(env.n_groups_to_process - env.curr_step - in_flight)

    def _may_begin(self) -> bool:
        """Return whether a group may begin, and limit the items that are made ahead."""
        env = self._env
        if env._items is not None:
            env._items.needed = self._missing
        has_slot = len(self._window.workers) < env.max_num_workers
        gives_no_row = self._groups_without_row >= MAX_GROUPS_WITHOUT_ROW
        is_over = gives_no_row or env._servers.gave_up.is_set()
        return self._missing > 0 and has_slot and not is_over

    async def _write_group(self, group: Group) -> None:
        group.is_for_trainer = False
        await self._run.work_on(group)
        if Ending.WRITTEN in group.endings:
            self._groups_without_row = 0
            self._env.curr_step += 1
            self._progress.advance()
            await self._env.wandb_log()
            return
        self._groups_without_row += 1
        if self._groups_without_row == MAX_GROUPS_WITHOUT_ROW:
            logger.error(
                "%d groups in a row gave no row: ending", self._groups_without_row
            )
