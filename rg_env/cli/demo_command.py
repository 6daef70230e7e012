"""`demo`: the main job on this machine, with a simulated model and trainer.

The Atropos API and the environment are the real ones, over real HTTP. Simulated are
the policy behind the inference server and the trainer, which trains nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from atroposlib.envs.server_handling.server_manager import APIServerConfig
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table

from rg_env.answers.extraction import FormatFailure
from rg_env.atropos import process_rows
from rg_env.cli.sentence_parser import SentenceParser
from rg_env.cli.simulated_server_command import level_setting
from rg_env.errors import SettingError
from rg_env.reports.metrics import Metrics
from rg_env.rollouts.dump_writer import read_groups
from rg_env.simulation.api_process import running_api
from rg_env.simulation.chat_tokenizer import TOKENIZER_FOLDER
from rg_env.simulation.child_process import running_program
from rg_env.simulation.stand_in_trainer import StandInTrainer, TrainerConfig

logger = logging.getLogger(__name__)

PROJECT = Path(__file__).resolve().parents[2]
SERVER_PROGRAM = "rg_env.cli.simulated_server_command"
MAX_TOKENS = 4096
EVAL_SAMPLES = 1
LOOK_EVERY_S = 0.5
LINE_EVERY_S = 3.0
RECENT_TASKS = 12


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, found {number}")
    return number


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = SentenceParser(
        prog="reasoning_gym_environment.py demo",
        description="Run the real Atropos API and the real environment over all tasks,"
        " with a simulated policy as the model and a stand-in trainer that trains"
        " nothing. No GPU, no account, no network.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--steps", type=_at_least_one, default=12, help="batches the trainer takes")
    add("--batch_size", type=_at_least_one, default=64, help="rollouts in a batch")
    add("--group_size", type=_at_least_one, default=8, help="rollouts of an item")
    add("--seed", type=int, default=1918, help="decides the items")
    add("--latency_ms", type=float, default=100.0, help="of the simulated server")
    add(
        "--complexity_mode",
        type=level_setting,
        default="random",
        help="difficulty: None, random, curriculum or a level in 0 to 1",
    )
    add("--dumps", default=str(PROJECT / "data_dumps"), help="folder of the dump files")
    return parser


def _server_options(options: argparse.Namespace) -> list[str]:
    return [
        "--port=0",
        f"--seed={options.seed}",
        f"--complexity_mode={options.complexity_mode}",
        f"--num_eval_samples_per_task={EVAL_SAMPLES}",
        f"--latency_ms={options.latency_ms}",
    ]


def _build_env(env_cls: Any, options: argparse.Namespace, api: str, server: str) -> Any:
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
            "data_dumps_dir": options.dumps,
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


def _totals(metrics: Metrics, trainer: StandInTrainer, steps: int) -> str:
    failures = sum(metrics.outcomes[name] for name in get_args(FormatFailure))
    scored = max(1, sum(metrics.outcomes.values()))
    counts = trainer.counts
    return (
        f"step {counts.steps}/{steps}: {counts.groups} groups,"
        f" {counts.rollouts} rollouts delivered; mean score {metrics.mean_score:.2f};"
        f" format failures {failures} ({failures / scored:.0%})"
    )


def _task_table(metrics: Metrics, names: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("task")
    for heading in ("n", "score"):
        table.add_column(heading, justify="right")
    for name in names:
        tally = metrics.tasks[name]
        table.add_row(name, str(tally.groups), f"{tally.mean_score:.2f}")
    return table


def _view(env: Any, trainer: StandInTrainer, steps: int) -> RenderableType:
    newest = list(env.metrics.tasks)[-RECENT_TASKS:]
    title = "simulated policy, real environment and API; the newest tasks:"
    table = _task_table(env.metrics, newest)
    return Group(_totals(env.metrics, trainer, steps), title, table)


async def _watch(env: Any, trainer: StandInTrainer, steps: int) -> None:
    """Show what happens until cancelled."""
    console = Console()
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            while True:
                live.update(_view(env, trainer, steps), refresh=True)
                await asyncio.sleep(LOOK_EVERY_S)
    while True:
        await asyncio.sleep(LINE_EVERY_S)
        print(_totals(env.metrics, trainer, steps), flush=True)


async def _run(env: Any, trainer: StandInTrainer, steps: int) -> None:
    """Run environment and trainer together; either's error ends both."""
    watching = asyncio.create_task(_watch(env, trainer, steps))
    work = [
        asyncio.create_task(trainer.run(steps)),
        asyncio.create_task(env.env_manager()),
    ]
    try:
        await asyncio.gather(*work)
    finally:
        for task in [watching, *work]:
            task.cancel()
        await asyncio.gather(watching, *work, return_exceptions=True)


def _page_rows(dumps: Sequence[Path]) -> Iterator[Mapping[str, Any]]:
    """Yield dumped groups in the form of rows."""
    for path in dumps:
        for group in read_groups(path):
            rollouts = group["rollouts"]
            yield {
                "task": group["task"],
                "gold_answer": group["gold_answer"],
                "messages": [rollout["conversation"] for rollout in rollouts],
                "answers": [rollout["answer"] for rollout in rollouts],
                "outcomes": [rollout["outcome"] for rollout in rollouts],
                "scores": [rollout["score"] for rollout in rollouts],
            }


def _report(env: Any, trainer: StandInTrainer, options: argparse.Namespace) -> bool:
    """Print what was delivered and where it is; say whether all is well."""
    console, metrics, counts = Console(), env.metrics, trainer.counts
    names = sorted(metrics.tasks)
    half = -(-len(names) // 2)
    tables = [
        _task_table(metrics, names[i : i + half]) for i in range(0, len(names), half)
    ]
    console.print("\nGroups (n) and mean score by task, of the simulated policy:")
    console.print(Columns(tables, padding=(0, 2)))
    outcomes = ", ".join(f"{name} {n}" for name, n in metrics.outcomes.most_common())
    fates = ", ".join(f"{n} {fate}" for fate, n in metrics.ledger.fates.most_common())
    console.print(
        f"\nOutcomes of {sum(metrics.outcomes.values())} rollouts: {outcomes}"
    )
    console.print(f"Of {metrics.ledger.asked} rollouts asked: {fates}")
    console.print(_totals(metrics, trainer, options.steps))
    if options.complexity_mode == "curriculum":
        console.print(
            "Levels: {level_changes} changes, mean {avg_complexity:.2f}, from"
            " {min_complexity:.2f} to {max_complexity:.2f}".format(
                **env.get_curriculum_stats()
            )
        )
    found = Path(options.dumps).glob(f"*_{env.run_uuid}_*.jsonl")
    dumps = sorted(found, key=lambda path: ("FAILED" in path.name, path.name))
    console.print("\nDump files, one group a line:")
    for path in dumps:
        console.print(f"  {path}", soft_wrap=True)
    if dumps:
        page = Path(options.dumps) / f"demo_{env.run_uuid}.html"
        process_rows.write_page(_page_rows(dumps), page)
        console.print(f"Open them as a page: {page}", soft_wrap=True)
        look = f"head -n 1 {dumps[0]} | python3 -m json.tool"
        console.print(f"Or look at one group: {look}", soft_wrap=True)
    if counts.invalid_groups:
        console.print(f"Invalid groups: {json.dumps(counts.faults)}")
    return (
        counts.groups > 0 and not counts.invalid_groups and not metrics.ledger.in_flight
    )


async def _demo(env_cls: Any, options: argparse.Namespace) -> bool:
    print("Starting the Atropos API and the simulated inference server ...", flush=True)
    async with contextlib.AsyncExitStack() as stack:
        api = await stack.enter_async_context(running_api())
        server = await stack.enter_async_context(
            running_program(SERVER_PROGRAM, *_server_options(options))
        )
        print(f"API {api}, simulated inference server {server}", flush=True)
        env = _build_env(env_cls, options, api, server)
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
        await _run(env, trainer, options.steps)
    return _report(env, trainer, options)


def demo(env_cls: Any, argv: Sequence[str]) -> int:
    """Run the command; status 0 only if groups were delivered."""
    options = build_parser().parse_args(argv)
    if options.batch_size % options.group_size:
        raise SettingError(
            f"command line: --batch_size {options.batch_size} is no multiple of"
            f" --group_size {options.group_size}, so the API would make no batch"
        )
    return 0 if asyncio.run(_demo(env_cls, options)) else 1
