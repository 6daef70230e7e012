"""The numbers of a run: its W&B run with its tables, and its file on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import string
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import wandb
from atroposlib.envs.base import BaseEnv

from rg_env.errors import RunError
from rg_env.reports.metrics import run_numbers
from rg_env.rollouts.group import listed
from rg_env.settings.kept_settings import env_settings

STARTS_WITHIN_S = 30.0
"""Where there is no network; W&B itself would try for a minute and a half."""

ROLLOUT_COLUMNS = ("full_text", "score", "expected_answer", "task_name")
"""The columns of the table `train/rollouts`.

Source: atropos 296a0bc, create_rollout_table(); differs: none.
"""

EVAL_TASK = "eval/task/"


async def start(env: BaseEnv, name: str | None) -> None:
    """Start the run of an environment, if its settings want one.

    Its name ends with the day and some letters; None is W&B's own.

    Raises:
        RunError: W&B did not start it.
    """
    if not env.config.use_wandb:
        return
    suffix = "".join(random.choices(string.ascii_lowercase, k=6))
    today = datetime.now(timezone.utc).date()
    # What is set here would win over the user's variable.
    is_set = "WANDB_INIT_TIMEOUT" in os.environ
    own: dict[str, Any] = {} if is_set else {"init_timeout": STARTS_WITHIN_S}
    try:
        await asyncio.to_thread(
            wandb.init,
            name=f"{name}-{today}-{suffix}" if name else None,
            project=env.wandb_project,
            group=env.wandb_group,
            config=dict(env_settings(env.config)),
            settings=wandb.Settings(**own),
        )
    except Exception as error:  # its own, and ValueError for its variables
        raise RunError(
            f"W&B failed ({type(error).__name__}: {' '.join(str(error).split())});"
            " WANDB_MODE=offline logs the run to this machine, --env.use_wandb false"
            " does without W&B"
        ) from error


async def finish() -> None:
    """End the run, if there is one."""
    if wandb.run is not None:
        await asyncio.to_thread(wandb.finish)


def with_task_table(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers, but a table in the place of a curve for each task."""
    by_task = [
        [name.removeprefix(EVAL_TASK), value]
        for name, value in numbers.items()
        if name.startswith(EVAL_TASK)
    ]
    others = {n: value for n, value in numbers.items() if not n.startswith(EVAL_TASK)}
    if by_task:
        others["eval/tasks"] = wandb.Table(["task", "mean score"], data=by_task)
    return others


async def keep_rollouts(env: Any, scored_data: Any) -> None:
    """Keep a few rollouts of one or several groups for the table, if W&B is on.

    The last two columns are empty where a group names no gold answer and no task.
    """
    config = env.config
    if not config.use_wandb:
        return
    for group in listed(scored_data):
        wanted = config.num_rollouts_per_group_for_logging
        rows = slice(None if wanted == -1 else wanted)
        decode, tokens = env.tokenizer.batch_decode, group["tokens"][rows]
        texts = await asyncio.to_thread(decode, tokens)
        names = str(group.get("gold_answer", "")), str(group.get("task", ""))
        scores = group["scores"][rows]
        env.rollouts_for_wandb.append(
            [(text, n, *names) for text, n in zip(texts, scores, strict=True)]
        )
    excess = len(env.rollouts_for_wandb) - config.num_rollouts_to_keep
    del env.rollouts_for_wandb[: max(0, excess)]


def rollout_table(groups: Sequence[Any]) -> dict[str, Any]:
    """Return the table of the rollouts that were kept; {} where there are none."""
    rows = [row for group in groups for row in group]
    table = wandb.Table(list(ROLLOUT_COLUMNS), data=rows) if rows else None
    return {"train/rollouts": table} if rows else {}


@contextlib.asynccontextmanager
async def logged(env: Any, given: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """Yield the numbers of a run for W&B, and then write all of them to its file.

    Mends B16 of docs/host_defects.md: of several servers only the last one is logged.
    """
    own = run_numbers(env.metrics, env._feedback, env._events())
    local = numbers = {**given, **own, **dict(env.eval_metrics)}
    env.eval_metrics = []
    if env.config.use_wandb:
        numbers = with_task_table(numbers) | run_tables(env)
    servers, of_servers = env.server.servers, dict[str, Any]()
    for i, server in enumerate(servers):
        of_servers |= await server.wandb_metrics({}, f"server_{i}")
    last = f"server/server_{len(servers) - 1}_"  # which the framework adds
    numbers |= {n: v for n, v in of_servers.items() if not n.startswith(last)}
    try:
        yield numbers
    finally:
        if env._kind:  # no command has no file
            known = {**local, **numbers, **of_servers}
            alarms = env.metrics.alarms.news()
            env._dumps.note_numbers(env.curr_step, env._kind, known, alarms)


def run_tables(env: Any) -> dict[str, Any]:
    """Return the tables of a run for W&B."""
    tables = {
        "train/alarms": env.metrics.alarms.table(),
        "train/tasks": env.metrics.task_table(),
        "curriculum/tasks": env._feedback.table(),
    }
    return {
        name: wandb.Table(list(columns), data=list(rows))
        for name, (columns, rows) in tables.items()
    }
