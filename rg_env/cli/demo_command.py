"""`demo`: a complete run on this machine.

The Atropos API, the environment and HTTP are real. The model is simulated, and the
trainer is a stand-in that trains nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rg_env import shutdown
from rg_env.cli.main import load_class, option
from rg_env.cli.options import ExplicitSettings, SettingsCommand, options
from rg_env.errors import EXIT_FAILED
from rg_env.installation import TOKENIZER_FOLDER
from rg_env.places import check_writable
from rg_env.reward.extraction import FORMAT_FAILURES
from rg_env.settings.environment_settings import DATA_DUMPS
from rg_env.settings.server_and_launch_settings import SIMULATED

if TYPE_CHECKING:
    from rg_env.demo.stand_in_trainer import StandInTrainer

SETTINGS = {
    "tokenizer_name": str(TOKENIZER_FOLDER),
    "use_wandb": False,
    "group_size": 8,
    "batch_size": 64,
    "max_token_length": 4096,
    "steps_per_eval": 0,
    "min_batch_allocation": None,
    "dump_rollouts": True,
    "dump_failed_rollouts": True,
    "rollout_save_score_threshold": 0.0,  # the report shows every group
}
PROGRESS_EVERY_S = 3.0


@options(
    "demo --steps 4 --complexity_mode 0.5",
    fields={"seed", "complexity_mode"},
    is_bare=True,
)
@option("--steps", click.IntRange(1), 12, "Number of batches the trainer takes")
@option("--dumps", click.Path(), str(DATA_DUMPS), "Folder of the dump files")
def demo(
    command: SettingsCommand, explicit: ExplicitSettings, steps: int, dumps: str
) -> int:
    """Run the real Atropos API and the real environment over all tasks.

    The model is simulated, and the trainer is a stand-in that trains nothing. It needs
    no GPU, no account and no network. The status is 0 only if groups were delivered,
    all valid, and no rollout is left in flight.
    """
    check_writable("--dumps", Path(dumps), is_folder=True)
    env_cls = load_class(command.env_cls)
    config, servers = explicit.merged_with(command.defaults_of(env_cls))
    model = servers[0].model_copy(update={"base_url": SIMULATED})
    changes = {**SETTINGS, "total_steps": steps, "data_dumps_dir": dumps}
    return shutdown.run(_demo(env_cls, config.model_copy(update=changes), model))


async def _demo(env_cls: Any, config: Any, model: Any) -> int:
    """Run all parts, and return the exit status."""
    from rg_env.demo.child_process import RUN_API, running_program
    from rg_env.demo.stand_in_trainer import StandInTrainer, TrainerConfig

    print("Starting the Atropos API ...", flush=True)
    async with running_program(*RUN_API, "--port=0") as api:
        config.rollout_server_url = api
        env = env_cls(config, [model])
        trainer = StandInTrainer(
            TrainerConfig(
                api_url=api,
                batch_size=config.batch_size,
                group_size=config.group_size,
                max_token_len=config.max_token_length,
                num_steps=config.total_steps,
            )
        )
        print("Setting up the environment over all tasks ...", flush=True)
        # Lines about dump files would hide the progress of the demo.
        logging.getLogger("rg_env.run.dumps").setLevel(logging.WARNING)
        # The simulated model writes invalid answers on purpose, and the report counts
        # them, so warnings about them are hidden.
        logging.getLogger("rg_env.run.metrics").setLevel(logging.ERROR)
        try:
            await _run(env, trainer)
        finally:
            print(f"\n{_progress(env, trainer)}")
            _write_report(env, Path(config.data_dumps_dir))
    counts = trainer.counts
    if counts.faults:
        print(f"the trainer found faults: {counts.faults}")
    if counts.groups and not counts.faults and not env.metrics.ledger.in_flight:
        return 0
    return EXIT_FAILED


async def _run(env: Any, trainer: StandInTrainer) -> None:
    """Run the environment and the trainer; an error of one ends both."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(PROGRESS_EVERY_S)
            print(_progress(env, trainer), flush=True)

    programs = (trainer.run(env.config.total_steps), env.env_manager())
    work = [asyncio.create_task(program) for program in programs]
    watching = asyncio.create_task(watch())
    try:
        done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        # Each is cancelled once; the environment then shuts down.
        for task in (*work, watching):
            task.cancel()
        await asyncio.gather(*work, watching, return_exceptions=True)
    for task in done:
        task.result()


def _progress(env: Any, trainer: StandInTrainer) -> str:
    counts = trainer.counts
    outcomes = env.metrics.outcomes
    scored = outcomes.total()
    failures = sum(outcomes[name] for name in FORMAT_FAILURES) / (scored or 1)
    steps = f"{counts.steps}/{env.config.total_steps}"
    return (
        f"step {steps}: {counts.groups} groups sent; {scored} rollouts scored, mean"
        f" score {env.metrics.mean_score:.2f}, format failures {failures:.0%}"
    )


def _write_report(env: Any, folder: Path) -> None:
    """Print the dump files of a run, and write a report about them and its metrics."""
    # The import is slow, because it imports polars.
    from rg_env.results.report import write_final_report

    run_uuid = env.run_uuid
    dumps = sorted(folder.rglob(f"*_{run_uuid}_*.jsonl"))
    files = "\n".join(f"  {os.path.relpath(path)}" for path in dumps)
    print(f"\nDump files, one group a line:\n{files}")
    out = folder / f"demo_{run_uuid}"
    if page := write_final_report(dumps, out, title="Groups of the demo"):
        print(f"Open them in a browser:\n  {os.path.relpath(page)}")
