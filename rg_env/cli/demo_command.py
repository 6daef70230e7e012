"""`demo`: the main job on this machine, with a simulated model and trainer.

The Atropos API and the environment are the real ones, over real HTTP. Simulated are
the policy behind the inference server and the trainer, which trains nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
from rich.columns import Columns
from rich.console import Console
from rich.table import Table

from rg_env import ending
from rg_env.cli.command import LATENCY_MS, Command, loaded, option
from rg_env.cli.setting_options import BareOptions
from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER
from rg_env.errors import SettingError
from rg_env.reports.metrics import Metrics
from rg_env.rollouts.dumps import METRICS_FOLDER
from rg_env.scoring.extraction import FORMAT_FAILURES
from rg_env.settings.environment_settings import DATA_DUMPS

if TYPE_CHECKING:
    from rg_env.demo.model import AnswerKey
    from rg_env.demo.stand_in_trainer import StandInTrainer

ROLLOUTS = click.IntRange(2, 4096)
"""Sizes of a group and of a batch, which are held in memory at once."""

MAX_TOKENS = 4096
LINE_EVERY_S = 3.0
OPTIONS = BareOptions({"seed", "complexity_mode"})


@click.command("demo", cls=Command, example="demo --steps 4 --complexity_mode 0.5")
@option(
    "--steps", click.IntRange(1, 1_000_000), 12, "Number of batches the trainer takes"
)
@option("--batch_size", ROLLOUTS, 64, "Rollouts in a batch, a multiple of --group_size")
@option("--group_size", ROLLOUTS, 8, "Rollouts of one item")
@option("--latency_ms", LATENCY_MS, 100.0, "Latency of the simulated server")
@option("--dumps", click.Path(), str(DATA_DUMPS), "Folder of the dump files")
@click.pass_obj
def demo(env_cls: Any, /, **given: Any) -> int:
    """Run the real Atropos API and the real environment over all tasks.

    The model is simulated, and the trainer is a stand-in that trains nothing. It needs
    no GPU, no account and no network. The status is 0 only if groups were delivered.
    """
    settings = OPTIONS.read(given)
    given |= {"seed": settings.seed, "complexity_mode": settings.complexity_mode}
    options = SimpleNamespace(**given)
    if options.batch_size % options.group_size:
        raise SettingError(
            f"command line: --batch_size {options.batch_size} is no multiple of"
            f" --group_size {options.group_size}, so the API would make no batch"
        )
    return ending.run(_demo(loaded(env_cls), options), _note)


demo.params += OPTIONS.options


def _note(number: signal.Signals) -> None:
    print(
        f"\n{number.name}: shutting down; a second signal ends the process at once",
        flush=True,
    )


# -- the run ---------------------------------------------------------------------------


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
        logging.getLogger("rg_env.atropos.group_rewards").setLevel(logging.ERROR)
        console, counts = Console(highlight=False, soft_wrap=True), trainer.counts
        try:
            await _run(env, trainer, options.steps)
            _print_report(console, env, options)
        finally:
            console.print(f"\n{_progress(env.metrics, trainer, options.steps)}")
            _write_report(console, env, Path(options.dumps))
    if counts.invalid_groups:
        faults = json.dumps(counts.faults)
        console.print(f"{counts.invalid_groups} groups no trainer takes: {faults}")
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
            print(_progress(env.metrics, trainer, steps), flush=True)

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


# -- what is printed -------------------------------------------------------------------


def _progress(metrics: Metrics, trainer: StandInTrainer, steps: int) -> str:
    """Return in one line how far the run is."""
    counts = trainer.counts
    place = f"step {counts.steps}/{steps}: {counts.groups} groups sent"
    scored = metrics.outcomes.total()
    if not scored:
        return f"{place}; nothing scored yet"
    failures = sum(metrics.outcomes[name] for name in FORMAT_FAILURES)
    return (
        f"{place}; {scored} rollouts scored, mean score {metrics.mean_score:.2f},"
        f" format failures {failures / scored:.0%}"
    )


def _print_report(console: Console, env: Any, options: SimpleNamespace) -> None:
    """Print the scores of the tasks, and a curriculum's levels."""
    names = sorted(env.metrics.tasks)
    half = -(-len(names) // 2)
    tables = []
    for part in (names[:half], names[half:]):
        table = Table("task", box=None, pad_edge=False)
        for heading in ("n", "score"):
            table.add_column(heading, justify="right")
        for name in part:
            tally = env.metrics.tasks[name]
            table.add_row(name, str(tally.groups), f"{tally.mean_score:.2f}")
        tables.append(table)
    console.print("\nGroups (n) and mean score by task, of the simulated policy:")
    console.print(Columns(tables, padding=(0, 2)))
    if options.complexity_mode == "curriculum":
        levels = env.get_curriculum_stats()
        console.print(
            "\nLevels: {level_changes} changes; now {avg_complexity:.2f} on average,"
            " {min_complexity:.2f} to {max_complexity:.2f}".format(**levels)
        )


def _write_report(console: Console, env: Any, folder: Path) -> None:
    """Name the dump files of a run, and make a report of them and its numbers."""
    run_uuid = env.run_uuid
    paths = folder.rglob(f"*_{run_uuid}_*.jsonl")
    dumps = sorted(paths, key=lambda path: ("FAILED" in path.name, path.name))
    if not dumps:
        return
    console.print("\nDump files, one group a line:")
    for path in dumps:
        console.print(f"  {os.path.relpath(path)}")
    from rg_env.pages.report import report_of  # and polars, which takes its time

    metrics = folder / METRICS_FOLDER / f"{run_uuid}_metrics.jsonl"
    out, title = folder / f"demo_{run_uuid}", "Groups of the demo"
    page = report_of([*dumps, metrics], out, title=title, is_simulated=True)
    if page is not None:
        console.print(f"Open them in a browser:\n  {os.path.relpath(page)}")
