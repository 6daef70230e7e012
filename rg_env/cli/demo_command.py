"""`demo`: the main job on this machine, with a simulated model and trainer.

The Atropos API and the environment are the real ones, over real HTTP. Simulated are
the policy behind the inference server and the trainer, which trains nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
import click
from rich.console import Console
from rich.live import Live

from rg_env import ending
from rg_env.cli.command import (
    LATENCY_MS,
    Command,
    loaded,
    option,
)
from rg_env.cli.demo_report import (
    live_view,
    print_report,
    progress_line,
    write_dumps_report,
)
from rg_env.cli.setting_options import bare_options, read_bare
from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER
from rg_env.demo.child_process import running_program
from rg_env.errors import SettingError
from rg_env.installation import RUNS_WRITE_IN

if TYPE_CHECKING:
    from rg_env.demo.stand_in_trainer import StandInTrainer

logger = logging.getLogger(__name__)

SERVER_PROGRAM = "rg_env.demo.inference_server"
ROLLOUTS = click.IntRange(2, 4096)
"""Of a group and of a batch, which are held in memory at once."""

DUMPS = RUNS_WRITE_IN / "data_dumps"
MAX_TOKENS = 4096
EVAL_SAMPLES = 1
LOOK_EVERY_S = 0.5
LINE_EVERY_S = 3.0


def _telling(env_cls: Any, session: aiohttp.ClientSession, server: str) -> Any:
    """Return the class of an environment that tells the simulated model the answers."""
    from rg_env.demo.answer_key import build_entry
    from rg_env.demo.inference_server import TELL

    class Telling(env_cls):  # type: ignore[misc]
        async def get_next_item(self) -> Any:
            item = await super().get_next_item()
            if item is not None:
                _, entry, handle = item
                url, body = (
                    server + TELL,
                    dataclasses.asdict(build_entry(handle, entry)),
                )
                async with session.post(url, json=body) as reply:
                    reply.raise_for_status()
            return item

    return Telling


def _build_env(env_cls: Any, options: SimpleNamespace, api: str, server: str) -> Any:
    from atroposlib.envs.server_handling.server_manager import APIServerConfig

    default, _ = env_cls.config_init()
    config = default.model_copy(
        update={
            "tokenizer_name": str(TOKENIZER_FOLDER),
            "rollout_server_url": api,
            "use_wandb": False,
            "group_size": options.group_size,
            "batch_size": options.batch_size,
            "total_steps": options.steps,
            "seed": options.seed,
            "max_token_length": MAX_TOKENS,
            "steps_per_eval": 0,
            "min_batch_allocation": None,
            "num_eval_samples_per_task": EVAL_SAMPLES,
            "complexity_mode": options.complexity_mode,
            "dump_rollouts": True,
            "dump_failed_rollouts": True,
            "rollout_save_score_threshold": 0.0,  # the report shows every group
            "data_dumps_dir": str(options.dumps),
        }
    )
    servers = [
        APIServerConfig(
            base_url=f"{server}/v1",
            model_name="simulated-policy",
            server_type="vllm",
            num_max_requests_at_once=128,
        )
    ]
    return env_cls(config, servers)


async def _watch(env: Any, trainer: StandInTrainer, steps: int) -> None:
    """Show what happens until cancelled."""
    console = Console()
    if console.is_terminal:
        # The log stays where it goes, if that is not this terminal.
        moves_log = sys.stderr.isatty()
        with Live(
            console=console, auto_refresh=False, redirect_stderr=moves_log
        ) as live:
            while True:
                live.update(live_view(env.metrics, trainer, steps), refresh=True)
                await asyncio.sleep(LOOK_EVERY_S)
    while True:
        await asyncio.sleep(LINE_EVERY_S)
        print(progress_line(env.metrics, trainer, steps), flush=True)


async def _run(env: Any, trainer: StandInTrainer, steps: int) -> None:
    """Run environment and trainer together; either's error ends both."""
    watching = asyncio.create_task(_watch(env, trainer, steps))
    work = [
        asyncio.create_task(trainer.run(steps)),
        asyncio.create_task(env.env_manager()),
    ]
    try:
        done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        # Each is cancelled once: what the environment does then is its end.
        for task in [watching, *work]:
            task.cancel()
        await asyncio.gather(watching, *work, return_exceptions=True)
    for task in done:
        task.result()


def _report(env: Any, trainer: StandInTrainer, options: SimpleNamespace) -> bool:
    """Print what was delivered and where it is; say whether all is well."""
    console, metrics, counts = Console(highlight=False), env.metrics, trainer.counts
    has_levels = options.complexity_mode == "curriculum"
    print_report(console, metrics, env.get_curriculum_stats() if has_levels else None)
    line = progress_line(metrics, trainer, options.steps)
    console.print(f"\n{line}", soft_wrap=True)
    write_dumps_report(console, env, options.dumps)
    if counts.invalid_groups:
        console.print(
            f"{counts.invalid_groups} of the groups are not what a trainer takes:"
            f" {json.dumps(counts.faults)}",
            soft_wrap=True,
        )
    return (
        counts.groups > 0 and not counts.invalid_groups and not metrics.ledger.in_flight
    )


def _say_ending(number: signal.Signals) -> None:
    print(
        f"\n{number.name}: shutting down; a second signal ends the process at once",
        flush=True,
    )


async def _demo(env_cls: Any, options: SimpleNamespace) -> tuple[Any, StandInTrainer]:
    """Run all parts; return what was counted, once they have ended."""
    # A second of imports, which --help does without.
    from rg_env.demo.api_process import running_api
    from rg_env.demo.stand_in_trainer import StandInTrainer, TrainerConfig

    print("Starting the Atropos API and the simulated inference server ...", flush=True)
    async with contextlib.AsyncExitStack() as stack:
        api = await stack.enter_async_context(running_api(is_quick=True))
        server = await stack.enter_async_context(
            running_program(SERVER_PROGRAM, f"--latency_ms={options.latency_ms}")
        )
        session = await stack.enter_async_context(aiohttp.ClientSession())
        print(f"API {api}, simulated inference server {server}", flush=True)
        env = _build_env(_telling(env_cls, session, server), options, api, server)
        trainer = StandInTrainer(
            TrainerConfig(
                api_url=api,
                batch_size=options.batch_size,
                group_size=options.group_size,
                max_token_len=MAX_TOKENS,
                num_steps=options.steps,
            )
        )
        print("Setting up the environment over all tasks ...", flush=True)
        # Its progress would drown the demo's own.
        logging.getLogger("rg_env.rollouts.dump_writer").setLevel(logging.WARNING)
        # It warns of answers that no scorer may see or can read. Here the simulated
        # policy writes them on purpose, and the report counts them.
        logging.getLogger("rg_env.atropos.group_rewards").addFilter(
            lambda record: record.levelno != logging.WARNING
        )
        try:
            await _run(env, trainer, options.steps)
        except asyncio.CancelledError:
            line = progress_line(env.metrics, trainer, options.steps)
            console = Console(highlight=False)
            console.print(f"The demo was ended at {line}", soft_wrap=True)
            write_dumps_report(console, env, options.dumps)
            raise
    return env, trainer


@click.command("demo", cls=Command, example="demo --steps 4 --complexity_mode 0.5")
@option(
    "--steps",
    click.IntRange(1, 1_000_000),
    12,
    "Number of batches that the trainer takes",
)
@option("--batch_size", ROLLOUTS, 64, "Rollouts in a batch, a multiple of --group_size")
@option("--group_size", ROLLOUTS, 8, "Rollouts of one item")
@option("--latency_ms", LATENCY_MS, 100.0, "Latency of the simulated server")
@option("--dumps", click.Path(), str(DUMPS), "Folder of the dump files")
@click.pass_obj
def demo(env_cls: Any, /, **given: Any) -> int:
    """Run the real Atropos API and the real environment over all tasks.

    The model is simulated, and the trainer is a stand-in that trains nothing. It needs
    no GPU, no account and no network. The status is 0 only if groups were delivered.
    """
    chosen = read_bare(OPTIONS, given).model_dump(include=SETTINGS)
    options = SimpleNamespace(**given | chosen | {"dumps": Path(given["dumps"])})
    if options.batch_size % options.group_size:
        raise SettingError(
            f"command line: --batch_size {options.batch_size} is no multiple of"
            f" --group_size {options.group_size}, so the API would make no batch"
        )
    env, trainer = ending.run(_demo(loaded(env_cls), options), _say_ending)
    return 0 if _report(env, trainer, options) else 1


SETTINGS = {"seed", "complexity_mode"}
OPTIONS = bare_options(SETTINGS)
demo.params += OPTIONS
