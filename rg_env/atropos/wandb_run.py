"""The numbers of a run: its W&B run with its tables, and its file on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import string
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import wandb
from atroposlib.envs.base import BaseEnv

from rg_env import patience
from rg_env.errors import RunError
from rg_env.items.run_stream import RunStream
from rg_env.reports.metrics import Metrics, run_numbers
from rg_env.rollouts.dumps import Dumps
from rg_env.rollouts.group import listed
from rg_env.settings.kept_settings import env_settings
from rg_env.tasks.feedback import Feedback


class WandbError(RunError):
    """W&B does not start a run."""

    @property
    def sentence(self) -> str:
        """The whole sentence."""
        return (
            f"W&B failed ({self}); WANDB_MODE=offline logs the run to this machine,"
            " --env.use_wandb false does without W&B"
        )


async def start(
    name: str | None,
    project: str | None,
    group: str | None,
    settings: Mapping[str, Any],
) -> None:
    """Start a run, whose name ends with the day and some letters; None is W&B's own.

    Raises:
        WandbError: W&B did not start it.
    """
    suffix = "".join(random.choices(string.ascii_lowercase, k=6))
    today = datetime.now(timezone.utc).date()
    # What is set here would win over the user's variable.
    own: dict[str, Any] = {"init_timeout": patience.WANDB_STARTS_WITHIN_S}
    if "WANDB_INIT_TIMEOUT" in os.environ:
        own.clear()
    try:
        await asyncio.to_thread(
            wandb.init,
            name=f"{name}-{today}-{suffix}" if name else None,
            project=project,
            group=group,
            config=dict(settings),
            settings=wandb.Settings(**own),
        )
    except Exception as error:  # its own, and ValueError for its variables
        said = " ".join(str(error).split())
        raise WandbError(f"{type(error).__name__}: {said}") from error


async def start_for(env: BaseEnv, name: str | None) -> None:
    """Start the run of an environment, if its settings want one; raises as `start`."""
    if env.config.use_wandb:
        settings = env_settings(env.config)
        await start(name, env.wandb_project, env.wandb_group, settings)


async def finish() -> None:
    """End the run, if there is one."""
    if wandb.run is not None:
        await asyncio.to_thread(wandb.finish)


ROLLOUT_COLUMNS = ("full_text", "score", "expected_answer", "task_name")
"""The columns of the table `train/rollouts`.

Source: atropos 296a0bc, create_rollout_table(); differs: none.
"""


async def rollout_rows(
    group: Mapping[str, Any], wanted: int, tokenizer: Any
) -> list[tuple[str, float, str, str]]:
    """Return the rows of the first rollouts of a group, see `ROLLOUT_COLUMNS`.

    Args:
        group: With tokens, shape (G, T_i), and scores, shape (G,); the last two
            columns are empty where it names no gold answer and no task.
        wanted: How many rollouts, -1 for all; there may be fewer.
        tokenizer: Decodes whole sequences, in a thread.
    """
    size = len(group["tokens"])
    count = size if wanted == -1 else min(wanted, size)
    texts = await asyncio.to_thread(tokenizer.batch_decode, group["tokens"][:count])
    answer, task = str(group.get("gold_answer", "")), str(group.get("task", ""))
    scores = group["scores"][:count]
    return [(text, n, answer, task) for text, n in zip(texts, scores, strict=True)]


async def numbers_of_servers(servers: Sequence[Any]) -> dict[str, Any]:
    """Return the numbers of servers.

    Mends B16 of docs/host_defects.md: of several servers only the last one is logged.
    """
    numbers: dict[str, Any] = {}
    for i, server in enumerate(servers):
        numbers.update(await server.wandb_metrics({}, f"server_{i}"))
    return numbers


class RunNumbers:
    """What is logged of a run.

    Args:
        env: Whose run it is.
        metrics: Counts what became of its rollouts.
        feedback: Knows the levels.
        dumps: Writes the numbers to a file, whether W&B is on or not.
        events: Returns what the collaborators have counted since the run began.
        sampled: Returns what the run samples; None before `setup`.
    """

    def __init__(
        self,
        env: BaseEnv,
        metrics: Metrics,
        feedback: Feedback,
        dumps: Dumps,
        events: Callable[[], Mapping[str, int]],
        sampled: Callable[[], RunStream | None],
    ) -> None:
        self._env = env
        self._metrics = metrics
        self._feedback = feedback
        self._dumps = dumps
        self._events = events
        self._sampled = sampled

    async def keep_rollouts(self, scored_data: Any) -> None:
        """Keep a few rollouts of one or several groups for the table, if W&B is on."""
        env, config = self._env, self._env.config
        if not config.use_wandb:
            return
        wanted = config.num_rollouts_per_group_for_logging
        for group in listed(scored_data):
            rows = await rollout_rows(group, wanted, env.tokenizer)
            env.rollouts_for_wandb.append(rows)
        excess = len(env.rollouts_for_wandb) - config.num_rollouts_to_keep
        del env.rollouts_for_wandb[: max(0, excess)]

    def rollout_table(self) -> dict[str, Any]:
        """Return the table of the rollouts that were kept; {} where there are none."""
        rows = [row for group in self._env.rollouts_for_wandb for row in group]
        return {"train/rollouts": table(ROLLOUT_COLUMNS, rows)} if rows else {}

    @contextlib.asynccontextmanager
    async def logged(
        self, given: Mapping[str, Any], kind: str
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the numbers for W&B, and then write all of them to the file.

        Args:
            given: What the caller logs besides.
            kind: Of run; "" where no command runs, which has no file.
        """
        env = self._env
        own = run_numbers(self._metrics, self._feedback, self._events())
        numbers = {**given, **own, **dict(env.eval_metrics)}
        env.eval_metrics = []
        local = numbers
        if env.config.use_wandb:
            numbers = without_task_curves(numbers) | self._tables()
        servers = env.server.servers
        of_servers = await numbers_of_servers(servers)
        last = f"server/server_{len(servers) - 1}_"  # which the framework adds
        numbers |= {n: v for n, v in of_servers.items() if not n.startswith(last)}
        try:
            yield numbers
        finally:
            if kind:
                known = {**local, **numbers, **of_servers}
                alarms = self._metrics.alarms.news()
                self._dumps.note_numbers(env.curr_step, kind, known, alarms)

    def _tables(self) -> dict[str, Any]:
        tables = {
            "train/alarms": table(*self._metrics.alarms.table()),
            "train/tasks": table(*self._metrics.task_table()),
            "curriculum/tasks": table(*self._feedback.table()),
        }
        if (made := self._sampled()) is not None:
            tables["train/items_not_sampled"] = table(*made.unused_table())
        return tables


EVAL_TASK = "eval/task/"


def without_task_curves(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers, but a table in the place of a curve for each task."""
    by_task = {n: value for n, value in numbers.items() if n.startswith(EVAL_TASK)}
    rows = [[name.removeprefix(EVAL_TASK), n] for name, n in by_task.items()]
    others = {name: n for name, n in numbers.items() if name not in by_task}
    if rows:
        others["eval/tasks"] = table(("task", "mean score"), rows)
    return others


def table(columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> Any:
    """Return a table for W&B."""
    return wandb.Table(list(columns), data=list(rows))
