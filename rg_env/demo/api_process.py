"""The real Atropos API as a child process that ends with us, alone or with a trainer.

The child serves what `run-api` serves, the framework's own or that of this project, but
on this machine's loopback address and on a free port.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from rg_env import ending
from rg_env.atropos import run_api as api
from rg_env.demo.child_process import announce, end_with_parent, running_program
from rg_env.demo.stand_in_trainer import (
    Groups,
    StandInTrainer,
    TrainerConfig,
    TrainerError,
)
from rg_env.serving import serve

PROGRAM = "rg_env.demo.api_process"
WITHOUT_END = 10**9
"""A number of steps that no run reaches."""


@contextlib.asynccontextmanager
async def running_api(
    port: int = 0,
    *,
    log_path: Path | None = None,
    is_quick: bool = False,
    program: str = PROGRAM,
) -> AsyncIterator[str]:
    """Run the Atropos API while the context lasts; yields its base URL.

    Args:
        port: Port on the loopback address; 0 for a free one.
        log_path: As of `running_program`.
        is_quick: Whether it is this project's `run-api`, not the framework's.
        program: What serves it.

    Raises:
        ChildError: It ended or did not answer in time.
    """
    argv = [f"--port={port}"] + ["--quick"] * is_quick
    async with running_program(program, *argv, log_path=log_path) as url:
        yield url


@contextlib.asynccontextmanager
async def trained_api(
    config: TrainerConfig,
    on_step: Callable[[Groups], object] = lambda groups: None,
    **api: Any,
) -> AsyncIterator[tuple[str, StandInTrainer]]:
    """Run it and the stand-in trainer, which takes all it gets; yields URL and trainer.

    Args:
        config: The trainer's; its `api_url` is set here.
        on_step: As of `StandInTrainer`.
        api: Arguments of `running_api`.
    """
    async with running_api(**api) as url:
        trainer = StandInTrainer(dataclasses.replace(config, api_url=url), on_step)
        training = asyncio.create_task(trainer.run(WITHOUT_END))
        try:
            yield url, trainer
        finally:
            training.cancel()
            with contextlib.suppress(asyncio.CancelledError, TrainerError):
                await training


def main(wrapped: Callable[[Any], Any] = lambda application: application) -> int:
    """Serve until the standard input closes what the API's application becomes."""
    parser = argparse.ArgumentParser(prog=f"python -m {PROGRAM}")
    parser.add_argument("--port", type=int, default=0, help="0 for a free one")
    parser.add_argument("--quick", action="store_true", help="this project's run-api")
    options = parser.parse_args()
    end_with_parent()
    try:
        listener = socket.create_server(("127.0.0.1", options.port), backlog=128)
    except OSError as error:
        raise SystemExit(f"127.0.0.1:{options.port}: {error.strerror}") from error
    served = wrapped(api.application(is_quick=options.quick))
    announce(f"http://127.0.0.1:{listener.getsockname()[1]}", "Atropos API")
    ending.run(serve(served, listener))
    return 0


if __name__ == "__main__":
    sys.exit(main())
