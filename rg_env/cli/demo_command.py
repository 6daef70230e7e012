"""`demo`: the main job on this machine, with a simulated model and trainer.

The Atropos API and the environment are the real ones, over real HTTP. Simulated are
the policy behind the inference server and the trainer, which trains nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from rg_env import ending
from rg_env.cli.command import LATENCY_MS, loaded, option
from rg_env.cli.settings_command import Given, SettingsCommand, settings_command
from rg_env.errors import SettingError
from rg_env.settings.environment_settings import DATA_DUMPS

if TYPE_CHECKING:
    from rg_env.demo.model import AnswerKey
    from rg_env.demo.stand_in_trainer import StandInTrainer

ROLLOUTS = click.IntRange(2, 4096)
"""Sizes of a group and of a batch, which are held in memory at once."""

MAX_TOKENS = 4096
LINE_EVERY_S = 3.0


@settings_command(
    "demo --steps 4 --complexity_mode 0.5",
    fields={"seed", "complexity_mode"},
    is_bare=True,
)
@option(
    "--steps", click.IntRange(1, 1_000_000), 12, "Number of batches the trainer takes"
)
@option("--batch_size", ROLLOUTS, 64, "Rollouts in a batch, a multiple of --group_size")
@option("--group_size", ROLLOUTS, 8, "Rollouts of one item")
@option("--latency_ms", LATENCY_MS, 100.0, "Latency of the simulated server")
@option("--dumps", click.Path(), str(DATA_DUMPS), "Folder of the dump files")
def demo(command: SettingsCommand, given: Given, **own: Any) -> int:
    """Run the real Atropos API and the real environment over all tasks.

    The model is simulated, and the trainer is a stand-in that trains nothing. It needs
    no GPU, no account and no network. The status is 0 only if groups were delivered.
    """
    settings, _ = given.over(command.start)
    level = settings.complexity_mode
    options = SimpleNamespace(**own, seed=settings.seed, complexity_mode=level)
    if options.batch_size % options.group_size:
        raise SettingError(
            f"command line: --batch_size {options.batch_size} is no multiple of"
            f" --group_size {options.group_size}, so the API would make no batch"
        )
    note = "\n{}: shutting down; a second signal ends the process at once"
    work = _demo(loaded(command.env_cls), options)
    return ending.run(work, lambda number: print(note.format(number.name), flush=True))


async def _demo(env_cls: Any, options: SimpleNamespace) -> int:
    """Run all parts; return the exit status."""
    # A second of imports, which --help does without.
    from rg_env.demo.child_process import RUN_API, running_program
    from rg_env.demo.inference_server import InferenceServer, build_app, serve_app
    from rg_env.demo.model import AnswerKey, PolicyModel
    from rg_env.demo.stand_in_trainer import StandInTrainer, TrainerConfig

    print("Starting the Atropos API and the simulated inference server ...", flush=True)
    key = AnswerKey()
    app = build_app(InferenceServer(PolicyModel(key), options.latency_ms))
    running_api = running_program(RUN_API, "--port=0")
    async with running_api as api, serve_app(app) as server:
        print(f"API {api}, simulated inference server {server}", flush=True)
        env = _build_env(_telling(env_cls, key), options, api, server)
        config = TrainerConfig(
            api_url=api,
            batch_size=options.batch_size,
            group_size=options.group_size,
            max_token_len=MAX_TOKENS,
            num_steps=options.steps,
        )
        trainer = StandInTrainer(config)
        print("Setting up the environment over all tasks ...", flush=True)
        # Its progress would drown the demo's own.
        logging.getLogger("rg_env.rollouts.dumps").setLevel(logging.WARNING)
        # It warns of answers that no scorer may see or can read. Here the simulated
        # policy writes them on purpose, and the report counts them.
        logging.getLogger("rg_env.reports.metrics").setLevel(logging.ERROR)
        try:
            await _run(env, trainer, options.steps)
        finally:
            print(f"\n{_progress(env, trainer, options.steps)}")
            _write_report(env, Path(options.dumps))
    counts = trainer.counts
    if counts.invalid_groups:
        faults = json.dumps(counts.faults)
        print(f"{counts.invalid_groups} groups no trainer takes: {faults}")
    is_well = counts.groups and not counts.invalid_groups
    return int(not is_well or bool(env.metrics.ledger.in_flight))


def _telling(env_cls: Any, key: AnswerKey) -> Any:
    """Return the class of an environment that tells the simulated model the answers."""
    from rg_env.demo.model import build_entry

    class Telling(env_cls):  # type: ignore[misc]
        async def get_next_item(self) -> Any:
            item = await super().get_next_item()
            if item is not None:
                key.remember(build_entry(item[2]))
            return item

    return Telling


def _build_env(env_cls: Any, options: SimpleNamespace, api: str, server: str) -> Any:
    from atroposlib.envs.server_handling.server_manager import APIServerConfig

    from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER

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
            "num_eval_samples_per_task": 1,
            "complexity_mode": options.complexity_mode,
            "dump_rollouts": True,
            "dump_failed_rollouts": True,
            "rollout_save_score_threshold": 0.0,  # the report shows every group
            "data_dumps_dir": options.dumps,
        }
    )
    served = APIServerConfig(
        base_url=f"{server}/v1",
        model_name="simulated-policy",
        server_type="vllm",
        num_max_requests_at_once=128,
    )
    return env_cls(config, [served])


async def _run(env: Any, trainer: StandInTrainer, steps: int) -> None:
    """Run environment and trainer together; either's error ends both."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(LINE_EVERY_S)
            print(_progress(env, trainer, steps), flush=True)

    work = [trainer.run(steps), env.env_manager()]
    tasks = [asyncio.create_task(each) for each in work]
    watching = asyncio.create_task(watch())
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        # Each is cancelled once: what the environment does then is its end.
        for task in [watching, *tasks]:
            task.cancel()
        await asyncio.gather(watching, *tasks, return_exceptions=True)
    for task in done:
        task.result()


def _progress(env: Any, trainer: StandInTrainer, steps: int) -> str:
    """Return in one line how far the run is, with the levels of a curriculum."""
    from rg_env.scoring.extraction import FORMAT_FAILURES

    counts, outcomes = trainer.counts, env.metrics.outcomes
    line = f"step {counts.steps}/{steps}: {counts.groups} groups sent"
    if not (scored := outcomes.total()):
        return f"{line}; nothing scored yet"
    failures = sum(outcomes[name] for name in FORMAT_FAILURES) / scored
    line += f"; {scored} rollouts scored, mean score {env.metrics.mean_score:.2f}"
    line += f", format failures {failures:.0%}"
    if env.config.complexity_mode == "curriculum":
        levels = (
            "{level_changes} changes of levels, now {avg_complexity:.2f} on average"
        )
        line += f"; {levels.format(**env.get_curriculum_stats())}"
    return line


def _write_report(env: Any, folder: Path) -> None:
    """Name the dump files of a run, and make a report of them and its numbers."""
    from rg_env.pages.report import report_of  # and polars, which takes its time
    from rg_env.rollouts.dumps import METRICS_FOLDER

    run = env.run_uuid
    files = folder.rglob(f"*_{run}_*.jsonl")
    dumps = sorted(files, key=lambda path: ("FAILED" in path.name, path.name))
    if not dumps:
        return
    print("\nDump files, one group a line:")
    for path in dumps:
        print(f"  {os.path.relpath(path)}")
    paths = [*dumps, folder / METRICS_FOLDER / f"{run}_metrics.jsonl"]
    out, title = folder / f"demo_{run}", "Groups of the demo"
    page = report_of(paths, out, title=title, is_simulated=True)
    if page is not None:
        print(f"Open them in a browser:\n  {os.path.relpath(page)}")
