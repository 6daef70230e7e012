"""The numbers of a run: its W&B run with its tables, and its file on this machine."""

from __future__ import annotations

import asyncio
import secrets
from datetime import datetime, timezone
from typing import Any

import wandb
from atroposlib.envs.base import BaseEnv

from rg_env.errors import RunError
from rg_env.results.result_file import env_settings
from rg_env.run.dumps import Dumps
from rg_env.run.group import listed
from rg_env.run.metrics import Metrics
from rg_env.stream.curriculum import Feedback


class Reporting(BaseEnv):
    """The hooks of W&B."""

    metrics: Metrics
    eval_metrics: list[tuple[str, float]]
    _feedback: Feedback
    _dumps: Dumps
    _kind: str

    async def _start_wandb(self, name: str | None) -> None:
        """Start a run, for example `gcd-2026-11-20-3f9a1c`; None is W&B's own name."""
        if not self.config.use_wandb:
            return
        today = datetime.now(timezone.utc).date()
        try:
            await asyncio.to_thread(
                wandb.init,
                name=f"{name}-{today}-{secrets.token_hex(3)}" if name else None,
                project=self.wandb_project,
                group=self.wandb_group,
                config={"model": self._dumps.model, **env_settings(self.config)},
            )
        except Exception as error:  # its own, and ValueError for its variables
            raise RunError(
                f"W&B failed ({type(error).__name__}: {' '.join(str(error).split())});"
                " WANDB_MODE=offline logs the run to this machine, --env.use_wandb"
                " false does without W&B"
            ) from error

    async def _finish_wandb(self) -> None:
        if wandb.run is not None:
            await asyncio.to_thread(wandb.finish)

    async def add_rollouts_for_wandb(self, scored_data: Any, item: Any = None) -> None:
        """Keep a few rollouts of a group for the W&B table, if W&B is on.

        The last two columns are empty where a group names no gold answer and no task.
        """
        if not self.config.use_wandb:
            return
        wanted = self.config.num_rollouts_per_group_for_logging
        most = None if wanted == -1 else wanted
        for group in listed(scored_data):
            tokens = group["tokens"][:most]
            texts = await asyncio.to_thread(self.tokenizer.batch_decode, tokens)
            gold = str(group.get("gold_answer", ""))
            task = str(group.get("task", ""))
            pairs = zip(texts, group["scores"][:most], strict=True)
            self.rollouts_for_wandb.append([(*pair, gold, task) for pair in pairs])
        excess = len(self.rollouts_for_wandb) - self.config.num_rollouts_to_keep
        del self.rollouts_for_wandb[: max(0, excess)]

    async def create_rollout_table(self, wandb_metrics: dict[str, Any]) -> Any:
        """Add the table of the rollouts that were kept, if there are any.

        Source: atropos 296a0bc, create_rollout_table(); differs: none.
        """
        columns = ["full_text", "score", "expected_answer", "task_name"]
        if rows := [row for group in self.rollouts_for_wandb for row in group]:
            wandb_metrics["train/rollouts"] = wandb.Table([*columns], data=rows)
        return wandb_metrics

    def get_curriculum_stats(self) -> dict[str, Any]:
        """Return the number of tasks seen, their recent scores and their levels."""
        return {
            "curriculum_mode": self.config.complexity_mode == "curriculum",
            **self._feedback.stats(),
            "task_details": self._feedback.details(),
        }

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Log the numbers of the run to W&B, if it is on, and to its own file.

        Mends B16 of docs/host_defects.md: of several servers only the last one is
        logged.
        """
        dict.update(self.metrics.events, self._events())
        numbers = {**(wandb_metrics or {}), **self.metrics.numbers()}
        if self._feedback.moves_something:
            stats = self.get_curriculum_stats()
            curves = stats.keys() - {"curriculum_mode", "task_details"}
            numbers |= {f"curriculum/{name}": stats[name] for name in curves}
        numbers |= dict(self.eval_metrics)
        self.eval_metrics = []
        for i, server in enumerate(self._servers.clients):
            numbers |= await server.wandb_metrics({}, f"server_{i}")
        if self.config.use_wandb:
            columns, rows = self._feedback.table()
            numbers["curriculum/tasks"] = wandb.Table([*columns], data=[*rows])
        try:
            await super().wandb_log(numbers)  # which adds its own to them
        finally:
            if self._kind:  # no command has no file
                alarms = self.metrics.alarms.news()
                self._dumps.note_numbers(self.curr_step, self._kind, numbers, alarms)

    def _events(self) -> dict[str, int]:
        """Return the events that the collaborators have counted since the run began."""
        events = self._dumps.losses()
        events |= self._servers.events
        events["api_retries"] = self._session.retries
        if self._pool is not None:
            events["worker_deaths"] = self._pool.deaths
        if self._items is not None:
            events |= self._items.events
        return events
