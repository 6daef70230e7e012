"""`simulated-server`: an inference server whose model is the simulated policy.

For trying out `serve`, `process` and `evaluate` on a machine without a GPU. It knows
the answers because it draws the same items, so `seed`, `eval_seed` and the choice of
tasks must be those of the environment; to any other question it can only guess.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import signal
import sys
from collections.abc import Sequence
from typing import Any

from rg_env.cli.parser import SentenceParser
from rg_env.demo import streams
from rg_env.demo.answer_key import AnswerKey
from rg_env.demo.policy import PolicyProfile
from rg_env.demo.server import ServerConfig, build_app, serve_app
from rg_env.errors import SettingError
from rg_env.isolation import jobs
from rg_env.isolation.pool import WorkerPool
from rg_env.tasks.selection import build_selection

READY = "simulated policy server ready on"
START_DEADLINE_S = 120.0
MAX_DRAWS = 512


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = SentenceParser(
        prog="reasoning_gym_environment.py simulated-server",
        description="Serve a simulated policy over vLLM's, SGLang's, TRL's and OpenAI's"
        " protocol. It loads no model: it knows the answers and errs on purpose.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--port", type=int, default=9004, help="0 picks a free one")
    add("--seed", type=int, default=1918, help="the environment's env.seed")
    add("--eval_seed", type=int, default=123, help="the environment's env.eval_seed")
    add(
        "--num_eval_samples_per_task",
        type=int,
        default=5,
        help="the environment's env.num_eval_samples_per_task",
    )
    add(
        "--tasks",
        default=None,
        help="the environment's env.tasks, separated by commas; all if not given",
    )
    add("--skill", type=float, default=0.55, help="mean skill over tasks, in (0, 1)")
    add("--latency_ms", type=float, default=0.0, help="wait before every answer")
    return parser


def _key(pool: WorkerPool, options: argparse.Namespace) -> AnswerKey:
    library = pool.call(jobs.describe_library, deadline_s=START_DEADLINE_S)
    names = None if options.tasks is None else options.tasks.split(",")
    selection = build_selection(library, tasks=names)
    return AnswerKey(
        [
            streams.train_entries(pool, library, selection, options.seed),
            streams.eval_entries(
                pool,
                library,
                selection,
                options.eval_seed,
                options.num_eval_samples_per_task,
            ),
        ],
        max_draws=MAX_DRAWS,
    )


async def _serve(options: argparse.Namespace, pool: WorkerPool) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    key = await asyncio.to_thread(_key, pool, options)
    profile = dataclasses.replace(PolicyProfile(), mean_skill=options.skill)
    config = ServerConfig(key, profile=profile, latency_ms=options.latency_ms)
    async with serve_app(build_app(config), options.host, options.port) as url:
        print(f"{READY} {url}", flush=True)
        await stopped.wait()


def simulated_server(env_cls: Any, argv: Sequence[str]) -> int:
    """Run the command until a signal ends it."""
    del env_cls
    options = build_parser().parse_args(argv)
    pool = WorkerPool(1, preload=jobs.PRELOAD)
    try:
        asyncio.run(_serve(options, pool))
    except ValueError as error:
        raise SettingError(f"command line: {error}") from error
    except OSError as error:
        raise SettingError(f"command line: --port {options.port}: {error}") from error
    finally:
        pool.close()
    return 0


if __name__ == "__main__":
    sys.exit(simulated_server(None, sys.argv[1:]))
