"""The metrics of a run: in W&B, with tables, and in a file on this machine."""

from __future__ import annotations

import asyncio
import secrets
from datetime import datetime, timezone
from typing import Any

import wandb
from atroposlib.envs.base import BaseEnv

from rg_env.atropos.api_client import ApiSession
from rg_env.errors import RunError
from rg_env.inference.servers import Servers
from rg_env.results.result_file import env_settings
from rg_env.run.dumps import Dumps
from rg_env.run.metrics import Metrics
from rg_env.stream.curriculum import Feedback
from rg_env.stream.prefetch import RunItems
from rg_env.workers.worker_pool import WorkerPool


class Reporting(BaseEnv):
    """Reports the metrics of a run to W&B and to its metrics file."""

    metrics: Metrics
    eval_metrics: list[tuple[str, float]]
    _feedback: Feedback
    _dumps: Dumps
    _kind: str
    _servers: Servers
    _session: ApiSession
    _pool: WorkerPool | None
    _items: RunItems | None

    async def _start_wandb(self, name: str | None) -> None:
        """Start a W&B run, for example `gcd-2026-11-20-3f9a1c` for the name `gcd`.

        If the name is None, W&B chooses one.
        """
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
        except Exception as error:  # W&B's errors; ValueError for a bad WANDB_ variable
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

        The last two columns are empty if the group names no gold answer and no task.
        """
        if not self.config.use_wandb:
            return
        limit = self.config.num_rollouts_per_group_for_logging
        end = None if limit == -1 else limit
        tokens = scored_data["tokens"][:end]
        texts = await asyncio.to_thread(self.tokenizer.batch_decode, tokens)
        gold = str(scored_data.get("gold_answer", ""))
        task = str(scored_data.get("task", ""))
        pairs = zip(texts, scored_data["scores"][:end], strict=True)
        self.rollouts_for_wandb.append([(*pair, gold, task) for pair in pairs])
        excess = len(self.rollouts_for_wandb) - self.config.num_rollouts_to_keep
        del self.rollouts_for_wandb[: max(0, excess)]

    async def create_rollout_table(self, wandb_metrics: dict[str, Any]) -> Any:
        """Add the table of the kept rollouts, if there are any.

        Source: atropos 296a0bc, create_rollout_table(); differs: none.
        """
        rows = [row for group in self.rollouts_for_wandb for row in group]
        if rows:
            wandb_metrics["train/rollouts"] = wandb.Table(
                ["full_text", "score", "expected_answer", "task_name"], data=rows
            )
        return wandb_metrics

    def get_curriculum_stats(self) -> dict[str, Any]:
        """Return the number of tasks seen, their recent scores and their levels."""
        return {
            "curriculum_mode": self.config.complexity_mode == "curriculum",
            **self._feedback.stats(),
            "task_details": self._feedback.details(),
        }

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Log the metrics of the run to W&B, if it is on, and to the metrics file.

        Mends B16 of docs/host_defects.md: the framework logs only the last of several
        servers.
        """
        for name, count in self._events().items():
            self.metrics.events[name] = count  # `Counter.update` would add them
        metrics = {**(wandb_metrics or {}), **self.metrics.metrics()}
        if self._feedback.has_effect:
            stats = self.get_curriculum_stats()
            curves = stats.keys() - {"curriculum_mode", "task_details"}
            metrics |= {f"curriculum/{name}": stats[name] for name in curves}
        metrics |= dict(self.eval_metrics)
        self.eval_metrics = []
        for index, client in enumerate(self._servers.clients):
            metrics |= await client.wandb_metrics({}, f"server_{index}")
        if self.config.use_wandb:
            columns, rows = self._feedback.table()
            metrics["curriculum/tasks"] = wandb.Table([*columns], data=[*rows])
        try:
            await super().wandb_log(metrics)  # which adds more to them
        finally:
            if self._kind:  # only a command has a metrics file
                alarms = self.metrics.alarms.new_rows()
                self._dumps.write_metrics(self.curr_step, self._kind, metrics, alarms)

    def _events(self) -> dict[str, int]:
        """Return the events that the other objects of the run have counted so far."""
        events = self._dumps.losses()
        events |= self._servers.events
        events["api_retries"] = self._session.retries
        if self._pool is not None:
            events["worker_deaths"] = self._pool.deaths
        if self._items is not None:
            events |= self._items.events
        return events
