"""`simulated-server`: an inference server whose model is the simulated policy.

For trying out `serve`, `process` and `evaluate` on a machine without a GPU. It knows
the answers because it draws the same items, so `seed`, `eval_seed`, the choice of tasks
and the difficulty must be those of the environment; to any other question it can only
guess. It cannot follow `task_choice` adaptive or a curriculum, where results decide
what comes next.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

from rg_env import ending
from rg_env.answers.scoring_rules import ScoringRules
from rg_env.cli import option_types
from rg_env.cli.main import main
from rg_env.cli.sentence_parser import SentenceParser
from rg_env.errors import SettingError
from rg_env.items import worker_jobs
from rg_env.items.entry_maker import EntryMaker
from rg_env.items.installed_library import read_library
from rg_env.items.item_source import ItemSource
from rg_env.items.run_difficulty import prepare_difficulty
from rg_env.pool.worker_pool import WorkerPool
from rg_env.simulation import key_entries
from rg_env.simulation.answer_key import AnswerKey
from rg_env.simulation.child_process import end_with_parent
from rg_env.simulation.inference_server import (
    InferenceServer,
    Pace,
    build_app,
    serve_app,
)
from rg_env.simulation.policy import PolicyProfile
from rg_env.simulation.policy_model import PolicyModel
from rg_env.tasks.curriculum import Curriculum
from rg_env.tasks.selection import build_selection

READY = "simulated policy server ready on"


def build_parser() -> SentenceParser:
    """Return the parser of the command."""
    parser = SentenceParser(
        prog="reasoning_gym_environment.py simulated-server",
        description="Serve a simulated policy over vLLM's, SGLang's, TRL's and OpenAI's"
        " protocol. It loads no model: it knows the answers and errs on purpose.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--host",
        type=option_types.not_blank,
        default="127.0.0.1",
        help="address to listen on",
    )
    add("--port", type=option_types.port, default=9004, help="0 picks a free one")
    add(
        "--seed",
        type=option_types.seed,
        default=1918,
        help="the environment's env.seed",
    )
    add(
        "--eval_seed",
        type=option_types.seed,
        default=123,
        help="the environment's env.eval_seed",
    )
    add(
        "--num_eval_samples_per_task",
        type=option_types.whole_number(1, option_types.MOST_ITEMS),
        default=5,
        help="the environment's env.num_eval_samples_per_task",
    )
    add(
        "--tasks",
        type=option_types.names,
        default=None,
        help="the environment's env.tasks, separated by commas; all if not given",
    )
    add(
        "--complexity_mode",
        type=option_types.level_setting,
        default="random",
        help="the environment's env.complexity_mode: None, random, a level or a range"
        " [low, high]",
    )
    add(
        "--skill",
        type=option_types.number(0.0, 1.0, open_ends=True),
        default=0.55,
        help="mean skill over tasks, in (0, 1)",
    )
    add(
        "--latency_ms",
        type=option_types.number(0.0, option_types.LONGEST_LATENCY_MS),
        default=0.0,
        help="wait before every answer",
    )
    return parser


async def _run(pool: WorkerPool, options: argparse.Namespace) -> key_entries.Run:
    library = await read_library(pool)
    try:
        choices = build_selection(library, tasks=options.tasks)
    except SettingError as error:
        raise SettingError(f"--{error}") from error
    difficulty = await prepare_difficulty(
        pool,
        sorted({choice.task for choice in choices}),
        library.tasks,
        options.complexity_mode,
        {},
        Curriculum(0.5),
    )
    return key_entries.Run(
        library,
        choices,
        difficulty,
        options.seed,
        options.eval_seed,
        options.num_eval_samples_per_task,
    )


async def _key(pool: WorkerPool, run: key_entries.Run) -> AnswerKey:
    evaluated = [entry async for entry in key_entries.eval_entries(pool, run)]
    questions = {entry.question for entry in evaluated}
    stream = run.build_stream()
    maker = EntryMaker(
        pool, stream, making_at_once=1, deadline_s=key_entries.DEADLINE_S
    )
    source = ItemSource(
        stream,
        maker,
        lookahead=key_entries.AHEAD,
        scoring_deadline_s=key_entries.DEADLINE_S,
        rules=ScoringRules(),
    )
    source.keep_for_evaluation(questions)
    return AnswerKey(key_entries.asked_entries(run, source), known=evaluated)


async def _serve(options: argparse.Namespace, pool: WorkerPool) -> None:
    run = await _run(pool, options)
    key = await _key(pool, run)
    profile = dataclasses.replace(PolicyProfile(), mean_skill=options.skill)
    server = InferenceServer(PolicyModel(key, profile), Pace(options.latency_ms))
    async with serve_app(build_app(server), options.host, options.port) as url:
        print(f"{READY} {url}", flush=True)
        await asyncio.Event().wait()


def simulated_server(env_cls: Any, argv: Sequence[str]) -> int:
    """Run the command until a signal ends it."""
    del env_cls
    options = build_parser().parse(argv)
    if options.complexity_mode == "curriculum":
        raise SettingError(
            "--complexity_mode: found curriculum, whose levels follow results that this"
            " server does not know; `demo --complexity_mode curriculum` runs one"
        )
    option_types.check_can_listen(options.host, options.port)
    pool = WorkerPool(1, preload=worker_jobs.PRELOAD)
    try:
        ending.run(_serve(options, pool))
    except SettingError:
        raise
    except ValueError as error:
        raise SettingError(f"command line: {error}") from error
    except OSError as error:
        raise SettingError(f"command line: --port {options.port}: {error}") from error
    finally:
        pool.close()
    return 0


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main(None, ["simulated-server", *sys.argv[1:]]))
