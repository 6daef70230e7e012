"""The numbers of a run: its W&B run with its tables, and its file on this machine."""

from __future__ import annotations

import asyncio
import random
import string
from datetime import datetime, timezone
from typing import Any

import wandb
from atroposlib.envs.base import BaseEnv

from rg_env.errors import RunError
from rg_env.results.result_files import env_settings
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
        """Start a run named so, with the day and some letters; None is W&B's own."""
        if not self.config.use_wandb:
            return
        suffix = "".join(random.choices(string.ascii_lowercase, k=6))
        today = datetime.now(timezone.utc).date()
        try:
            await asyncio.to_thread(
                wandb.init,
                name=f"{name}-{today}-{suffix}" if name else None,
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
        config = self.config
        for group in listed(scored_data) if config.use_wandb else ():
            wanted = config.num_rollouts_per_group_for_logging
            rows = slice(None if wanted == -1 else wanted)
            decode, tokens = self.tokenizer.batch_decode, group["tokens"][rows]
            texts = await asyncio.to_thread(decode, tokens)
            names = str(group.get("gold_answer", "")), str(group.get("task", ""))
            scores = group["scores"][rows]
            self.rollouts_for_wandb.append(
                [(text, n, *names) for text, n in zip(texts, scores, strict=True)]
            )
        excess = len(self.rollouts_for_wandb) - config.num_rollouts_to_keep
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
        metrics, feedback = self.metrics, self._feedback
        dict.update(metrics.events, self._events())
        numbers = {**(wandb_metrics or {}), **metrics.numbers()}
        if feedback.moves_something:
            stats = self.get_curriculum_stats()
            curves = stats.keys() - {"curriculum_mode", "task_details"}
            numbers |= {f"curriculum/{name}": stats[name] for name in curves}
        numbers |= dict(self.eval_metrics)
        self.eval_metrics = []
        for i, server in enumerate(self._servers.clients):
            numbers |= await server.wandb_metrics({}, f"server_{i}")
        if self.config.use_wandb:
            columns, rows = feedback.table()
            numbers["curriculum/tasks"] = wandb.Table([*columns], data=[*rows])
        try:
            await super().wandb_log(numbers)  # which adds its own to them
        finally:
            if self._kind:  # no command has no file
                alarms = metrics.alarms.news()
                self._dumps.note_numbers(self.curr_step, self._kind, numbers, alarms)

    def _events(self) -> dict[str, int]:
        """Return the events that the collaborators have counted since the run began."""
        return {
            **self._dumps.losses(),
            **self._servers.events,
            **self._session.events,
            "worker_deaths": 0 if self._pool is None else self._pool.deaths,
            **({} if self._items is None else self._items.events),
        }
