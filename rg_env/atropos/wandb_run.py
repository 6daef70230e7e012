"""The W&B run of an environment, and the rollouts of its table."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import string
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import wandb

from rg_env import patience
from rg_env.errors import RunError


def _own_folders() -> list[Path]:
    """Return the two folders that W&B makes at its import, used or not."""
    with contextlib.suppress(ImportError, AttributeError):  # private to W&B
        from wandb.sdk.artifacts.artifact import Artifact
        from wandb.sdk.data_types._private import MEDIA_TMP

        return [Path(MEDIA_TMP.name), Path(Artifact._TMP_DIR.name)]
    return []


# A process that is killed would leave them, also one that does not use W&B.
for _folder in _own_folders():
    with contextlib.suppress(OSError):
        _folder.rmdir()


def make_folders() -> None:
    """Make the folders that W&B writes to, as they are gone since its import."""
    for folder in _own_folders():
        folder.mkdir(mode=0o700, exist_ok=True)


class WandbError(RunError):
    """W&B does not start a run."""

    @property
    def sentence(self) -> str:
        """The whole sentence."""
        return (
            f"W&B failed ({self}); WANDB_MODE=offline keeps the run on this machine,"
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


async def finish() -> None:
    """End the run, if there is one."""
    if wandb.run is not None:
        await asyncio.to_thread(wandb.finish)


ROLLOUT_COLUMNS = ("full_text", "score", "expected_answer", "task_name")
"""Of the table `train/rollouts`.

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
