"""`process`: a number of groups as rows, without a trainer; and `screen`.

A screen is a run of `process` with the settings of a run of `serve`: requests, lengths,
scores and rewards are the same. But it samples the tasks in turn instead of by weight,
spreads their levels evenly over the range, and uses items that the run will not sample.

Mends B14 of docs/host_defects.md: the framework samples one group at a time, ends with
status 0 if an item is missing, and drops groups of equal scores without a limit.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import yaml

from rg_env.atropos import start_checks
from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.atropos.pipeline import Flight, Pipeline
from rg_env.atropos.result_files import settings_text
from rg_env.errors import SettingError, counted, not_allowed
from rg_env.off_loop import off_loop
from rg_env.results.sources import metrics_beside
from rg_env.results.terminal import WorkProgress
from rg_env.run.group import Ending, Group
from rg_env.settings.environment_settings import CHOICE_OF_TASKS
from rg_env.stream.draws import Stream

if TYPE_CHECKING:
    from rg_env.results.screening import Bounds, TaskScreen

logger = logging.getLogger(__name__)

# Groups in a row that give no row before `process` ends with a failure.
FRUITLESS_GROUPS_IN_A_ROW = 200

# By default, a screen samples a share of the run's rollouts, at least 5 groups a task.
SHARE_OF_RUN, LEAST_GROUPS = 0.02, 5

HEAD = "# Written by `screen`"  # a file that begins so may be replaced by a screen


class Processing(Pipeline):
    """The hook of `process`, and of `screen`."""

    n_groups_to_process: int
    curr_step: int
    screen: ScreenRun | None = None  # None in `process`

    async def process_manager(self) -> None:
        """Write a number of groups, several at a time."""
        self.process_mode = True
        self.config.group_size = self.group_size_to_process
        kind = "process" if self.screen is None else "screen"
        start_checks.check_command(kind, self.config, ())
        await self._live(kind, self._process(kind))

    async def _process(self, kind: str) -> None:
        await self._set_up_alone()
        if self.screen is not None:
            self.n_groups_to_process = self.screen.begin(self._prepared_items().stream)
        await self._continue_rows()
        self._dumps.put_numbers(metrics_beside(self.jsonl_writer.path))
        if self.curr_step < self.n_groups_to_process:
            await self._write_rows(kind, self.n_groups_to_process)
        if self.curr_step < self.n_groups_to_process:
            self._lifetime.fail()

    async def _continue_rows(self) -> None:
        """Continue the file of an ended run of the same settings, if there is one."""
        rows, items, total = self.jsonl_writer, self._items, self.n_groups_to_process
        if items is None:  # nothing makes the items of a subclass again
            return
        servers, versions = self._servers.clients, self._dumps.versions
        settings = settings_text(self.config, servers, versions)
        # The rows of a screen are read again, also where none is missing.
        items.sampled, results = await off_loop(
            rows.resume, settings, total, even_complete=self.screen is not None
        )
        self.config.data_path_to_save_groups = str(rows.path)
        for result in results:
            self._feedback.take(*result)
        self.curr_step = len(results)

    async def _write_rows(self, title: str, total: int) -> None:
        """Write groups until the file has as many rows as are wanted.

        It ends before if the servers were given up, if no item is left, or if too many
        groups in a row gave no row.
        """
        items, flight, fruitless = self._items, Flight(), 0
        most, gave_up = FRUITLESS_GROUPS_IN_A_ROW, self._servers.gave_up

        def missing() -> int:
            return total - self.curr_step - len(flight.workers)

        def may_begin() -> bool:
            is_over = gave_up.is_set() or fruitless >= most
            has_place = len(flight.workers) < self.max_num_workers
            return missing() > 0 and has_place and not is_over

        async def next_work() -> Coroutine[Any, Any, None] | None:
            if items is not None:
                items.needed = missing()
            group = await self._next_group()
            return None if group is None else write(group)

        async def write(group: Group) -> None:
            nonlocal fruitless
            await self._work_on(
                group, do_send_to_api=False, abort_on_any_max_length_exceeded=False
            )
            if Ending.WRITTEN in group.endings:
                fruitless = 0
                self.curr_step += 1
                progress.advance()
                await self.wandb_log()
            else:
                fruitless += 1
                if fruitless == most:
                    logger.error("%d groups in a row gave no row: ending", most)

        with WorkProgress(title, total, "groups", self.curr_step) as progress:
            try:
                await flight.run(next_work, may_begin)
            finally:
                if self.curr_step < total:
                    what = f"{self.curr_step} of {total} groups were written"
                    logger.error("only %s; the same command continues", what)


# -- what `screen` samples, and the settings that it writes ----------------------------


def _drawn(setting: Any) -> Any:
    """Return a setting of levels whose levels no result moves."""
    return "random" if setting == "curriculum" else setting


class ScreenRun:
    """One screen of a run; `config` has the settings of the screen itself."""

    def __init__(
        self, run: ReasoningGymEnvConfig, groups_each: int | None, rows: str
    ) -> None:
        self._run, self._groups_each = run, groups_each
        if run.group_size < 2:
            allowed = "at least 2 in a screen: one rollout has no variance"
            raise not_allowed("env.group_size", run.group_size, allowed)
        levels = run.task_levels.items()
        self.config = run.model_copy(
            update={
                "task_choice": "in_turn",
                "shard_index": 0,
                "num_shards": 1,
                "complexity_mode": _drawn(run.complexity_mode),
                "task_levels": {name: _drawn(setting) for name, setting in levels},
                "ensure_scores_are_not_same": False,
                "include_messages": True,
                "data_path_to_save_groups": rows,
                "use_wandb": False,
            }
        )

    def begin(self, stream: Stream) -> int:
        """Return how many groups are screened of what the run may sample."""
        self._stream, run, each = stream, self._run, self._groups_each
        tasks = [choice.task for choice in stream.choices]
        if len(set(tasks)) < len(tasks):
            why = "one is chosen with several parameters, which a screen cannot tell"
            raise SettingError(f"env.tasks: {why} apart; keep one of them")
        if each is None:
            rollouts = max(0, run.total_steps) * max(0, run.batch_size)
            share = int(SHARE_OF_RUN * rollouts / run.group_size / len(tasks))
            each = max(LEAST_GROUPS, share)
        groups = counted(each, "group")
        logger.info("screen: %s of each of %s", groups, counted(len(tasks), "task"))
        return each * len(tasks)

    @property
    def bounds(self) -> dict[str, Bounds | None]:
        """Task to the range of its levels, None where they are not drawn from one."""
        difficulty = self._stream.difficulty
        rules = {c.task: difficulty.rules[c.task] for c in self._stream.choices}
        return {t: r.bounds if r.mode == "random" else None for t, r in rules.items()}

    def settings(
        self, given: Mapping[str, Any], tasks: Sequence[TaskScreen]
    ) -> dict[str, Any]:
        """Return what the user has set, with the tasks that are kept, by section."""
        kept = [task for task in tasks if not task.left_out]
        difficulty, mode = self._stream.difficulty, self._run.complexity_mode
        params = {c.task: dict(c.params) for c in self._stream.choices}
        levels: dict[str, Any] = {
            t.task: list(t.levels) if t.levels else difficulty.fixed_level(t.task)
            for t in kept
            if t.task in difficulty.scales
        }
        chosen = {
            "tasks": [task.task for task in kept],
            "task_weights": {task.task: round(task.share, 3) for task in kept},
            "task_levels": {t: each for t, each in levels.items() if each != mode},
            "task_params": {t.task: params[t.task] for t in kept if params[t.task]},
        }
        env = {n: v for n, v in given["env"].items() if n not in CHOICE_OF_TASKS}
        return {**given, "env": env | {n: v for n, v in chosen.items() if v}}


def screen_text(settings: Mapping[str, Any]) -> str:
    """Return settings as YAML, in a file that the next screen may replace."""
    how: dict[str, Any] = {"sort_keys": False, "default_flow_style": None, "width": 88}
    return f"{HEAD}\n{yaml.safe_dump(dict(settings), **how)}"
