"""The real Atropos API with the stand-in trainer, which takes all it gets."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from rg_env.demo.api_process import running_api
from rg_env.demo.stand_in_trainer import (
    StandInTrainer,
    TrainerConfig,
    TrainerError,
    TrainerStep,
)

WITHOUT_END = 10**9
"""A number of steps that no run reaches."""


@contextlib.asynccontextmanager
async def trained_api(
    config: TrainerConfig,
    on_step: Callable[[TrainerStep], None] | None = None,
    *,
    port: int = 0,
    log_path: Path | None = None,
    is_counted: bool = False,
    is_quick: bool = False,
) -> AsyncIterator[tuple[str, StandInTrainer]]:
    """Run both while the context lasts.

    Args:
        config: The trainer's; its `api_url` is set here.
        on_step: Told of each of its steps.
        port: Of the API; 0 for a free one.
        log_path: For what the API prints.
        is_counted: Whether the API's groups are counted, see `group_counter`.
        is_quick: Whether the API is this project's, not the framework's.

    Yields:
        The API's URL, and the trainer.

    Raises:
        ChildError: The API did not start.
    """
    async with running_api(
        port, log_path=log_path, is_counted=is_counted, is_quick=is_quick
    ) as url:
        trainer = StandInTrainer(dataclasses.replace(config, api_url=url), on_step)
        training = asyncio.create_task(trainer.run(WITHOUT_END))
        try:
            yield url, trainer
        finally:
            training.cancel()
            with contextlib.suppress(asyncio.CancelledError, TrainerError):
                await training
