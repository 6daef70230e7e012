"""`serve` against a model that answers with hostile texts; the event loop is watched.

    python benchmarks/hostile_serve.py [--groups 2000] [--json FILE]

The Atropos API and the environment are the real ones, the trainer is a stand-in in a
process of its own, and the model is simulated: every completion is one of the texts of
`hostile_texts`, in tags. All groups are delivered, also those of equal scores. Shown
are how late the event loop was in the environment's process, what became of the
rollouts and what the texts left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from aiohttp import web
from atroposlib.envs.server_handling.server_manager import APIServerConfig

from benchmarks.hostile_texts import HOSTILE, armed
from reasoning_gym_environment import ReasoningGymEnv, ReasoningGymEnvConfig
from rg_env import logs
from rg_env.simulation.api_process import running_api
from rg_env.simulation.engine import TOKENIZER_FOLDER, load_tokenizer
from rg_env.simulation.inference_server import serve_app
from rg_env.simulation.stand_in_trainer import StandInTrainer, TrainerConfig

GROUP = 8
BATCH = 64
MAX_TOKENS = 6144
TICK_S = 0.005
UNUSED_PORT = 9


def encoded_texts(folder: str) -> list[list[int]]:
    """Return the token ids of completions that carry the hostile texts."""
    tokenizer = load_tokenizer(TOKENIZER_FOLDER)
    completions = []
    for hostile in HOSTILE:
        text = armed(hostile.text, folder, UNUSED_PORT)[:40_000]
        readable = text.encode("utf-8", "replace").decode()
        answer = f"<think>hm</think><answer>{readable}</answer>"
        completions.append(tokenizer.encode(answer).ids)
    return completions


def hostile_app(folder: str) -> web.Application:
    """Return a server of vLLM's protocol whose every completion is hostile."""
    completions, rng = encoded_texts(folder), random.Random(0)

    async def health(request: web.Request) -> web.Response:
        return web.json_response({})

    async def generate(request: web.Request) -> web.Response:
        body = await request.json()
        limit = body["max_tokens"]
        chosen = [rng.choice(completions)[:limit] for _ in range(body["n"])]
        reply = {
            "logprobs": [[[{str(i): -0.5}] for i in ids] for ids in chosen],
            "finish_reasons": ["length" if len(i) == limit else "stop" for i in chosen],
        }
        return web.json_response(reply)

    app = web.Application()
    app.add_routes([web.get("/health", health), web.post("/generate", generate)])
    return app


async def serve_hostile(folder: str) -> None:
    """Serve in this process until it is ended."""
    async with serve_app(hostile_app(folder)) as url:
        print(url, flush=True)
        await asyncio.Event().wait()


async def watch_loop(delays_ms: list[float]) -> None:
    """Record how late the event loop is, again and again."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(TICK_S)
        delays_ms.append(1000 * (time.perf_counter() - began - TICK_S))


async def run(groups: int, url: str, folder: str) -> dict[str, Any]:
    """Run the environment and a trainer; return what was found."""
    steps = groups * GROUP // BATCH
    delays_ms: list[float] = []
    async with running_api() as api:
        config = ReasoningGymEnvConfig(
            tokenizer_name=str(TOKENIZER_FOLDER),
            rollout_server_url=api,
            use_wandb=False,
            group_size=GROUP,
            total_steps=steps,
            max_token_length=MAX_TOKENS,
            steps_per_eval=0,
            num_eval_samples_per_task=1,
            ensure_scores_are_not_same=False,
            data_dumps_dir=folder,
        )
        server = APIServerConfig(base_url=f"{url}/v1", server_type="vllm")
        env = ReasoningGymEnv(config, [server])
        serving = asyncio.create_task(env.env_manager())
        async with child(f"--train={api}", f"--groups={groups}") as trainer:
            while not env.ledger.fates["sent"]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            watching = asyncio.create_task(watch_loop(delays_ms))
            began = time.perf_counter()
            delivered, invalid = json.loads(await said(trainer))
            seconds = time.perf_counter() - began
            watching.cancel()
        await serving
    quantiles = statistics.quantiles(delays_ms, n=1000)
    return {
        "groups delivered": delivered,
        "groups invalid": invalid,
        "groups/s": round(delivered / seconds, 1),
        "loop delay ms": {
            "p50": round(quantiles[499], 2),
            "p99": round(quantiles[989], 2),
            "max": round(max(delays_ms), 1),
        },
        "outcomes": dict(env.metrics.outcomes),
        "fates": dict(env.ledger.fates),
        "rollouts without a fate": env.ledger.in_flight,
        "files left by texts": len(os.listdir(folder)),  # noqa: PTH208
    }


async def train(api: str, groups: int) -> None:
    """Be the trainer in this process; print what came."""
    steps = groups * GROUP // BATCH
    trainer = StandInTrainer(TrainerConfig(api, BATCH, GROUP, MAX_TOKENS, steps))
    counts = await trainer.run(steps)
    print(json.dumps([counts.groups, counts.invalid_groups]), flush=True)


@contextlib.asynccontextmanager
async def child(*argv: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run this program in another role."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, *argv, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def said(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def measure(groups: int) -> dict[str, Any]:
    """Measure with the hostile server in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        async with child(f"--serve={folder}") as server:
            return await run(groups, await said(server), folder)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=2000)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--serve", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--train", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.serve is not None:
        asyncio.run(serve_hostile(options.serve))
    if options.train is not None:
        asyncio.run(train(options.train, options.groups))
        return 0
    logs.start()
    found = asyncio.run(measure(options.groups))
    for name, value in found.items():
        print(f"{name:<24} {value}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
