"""What the way of a group through the main process costs, from reply to send.

    python benchmarks/inference_path.py [--tokens 300] [--group 8] [--groups 400]

The environment is the real one, over real HTTP. The inference server and the Atropos
API are simulated, in a process of their own: the replies are made before the
measurement begins, and the API takes every group and keeps none. So neither is the
limit, and what is measured is this process alone. Every group is sent, also those of
equal scores.

With --null the environment asks one constant item and scores nothing: what is left is
the host's side, the limit for everything else.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
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

from reasoning_gym_environment import ReasoningGymEnv, ReasoningGymEnvConfig
from rg_env import logs
from rg_env.simulation.engine import TOKENIZER_FOLDER, load_tokenizer
from rg_env.simulation.inference_server import serve_app

TICK_S = 0.01
WARM_UP_GROUPS = 32
NUM_REPLIES = 16
WORDS = ("the", "sum", "of", "two", "and", "three", "is", "five", "so", "we", "add")
CONSTANT = {"question": "2 + 2?", "answer": "4", "metadata": {"source_dataset": "x"}}


# -- the simulated inference server ----------------------------------------------------


def completion_ids(tokenizer: Any, tokens: int, rng: random.Random) -> list[int]:
    """Return the ids of a completion of about that many tokens."""
    answer = f"</think><answer>{rng.randrange(100)}</answer>"
    tail: list[int] = tokenizer.encode(answer).ids
    words = " ".join(rng.choice(WORDS) for _ in range(2 * tokens))
    head: list[int] = tokenizer.encode(f"<think>{words}").ids
    return head[: max(1, tokens - len(tail))] + tail


def prebuilt_replies(kind: str, tokens: int, group: int) -> list[bytes]:
    """Return replies as a server of the kind sends them, ready to go out."""
    tokenizer, rng = load_tokenizer(TOKENIZER_FOLDER), random.Random(0)
    replies = []
    for _ in range(NUM_REPLIES):
        chosen = [completion_ids(tokenizer, tokens, rng) for _ in range(group)]
        logprobs = [[-rng.expovariate(1.0) for _ in ids] for ids in chosen]
        pairs = [list(zip(*b, strict=True)) for b in zip(chosen, logprobs, strict=True)]
        texts = [tokenizer.decode(ids) for ids in chosen]
        reply: Any
        if kind == "vllm":
            reply = {
                "text": texts,
                "prompt": "p" * 1000,
                "finish_reasons": ["stop"] * group,
                "logprobs": [[[{str(i): p}] for i, p in both] for both in pairs],
                "prompt_token_ids": list(range(200)),
                "token_ids": chosen,
            }
        else:
            reply = [
                {
                    "text": text,
                    "meta_info": {
                        "id": "0",
                        "finish_reason": {"type": "stop", "matched": 0},
                        "output_token_logprobs": [[p, i, None] for i, p in both],
                    },
                }
                for text, both in zip(texts, pairs, strict=True)
            ]
        replies.append(json.dumps(reply, separators=(",", ":")).encode())
    return replies


def inference_app(replies: list[bytes], latency_s: float) -> web.Application:
    """Return a server of both kinds that answers with one of the replies."""
    rng = random.Random(0)

    async def health(request: web.Request) -> web.Response:
        return web.json_response({})

    async def generate(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(latency_s)
        return web.Response(body=rng.choice(replies), content_type="application/json")

    app = web.Application(client_max_size=2**26)
    app.add_routes([web.get("/health", health), web.post("/generate", generate)])
    app.add_routes([web.post("/v1/completions", health)])
    return app


def api_app() -> web.Application:
    """Return an API that has a trainer, never fills up and keeps nothing."""
    status = {
        "current_step": 0,
        "queue_size": 0,
        "self_queue_size": 0,
        "max_group_size": 1,
        "env_weight": 1.0,
        "unallocated_fraction": 1.0,
    }
    told = {"status": "success", "env_id": 0, "wandb_name": "env_0", "num_steps": 2**30}
    told |= {"starting_step": 0, "checkpoint_dir": "", "checkpoint_interval": 0}
    answers = {
        "/register-env": told,
        "/info": {"batch_size": 2**20, "max_token_len": 2**20},
        "/status-env": status,
        "/scored_data": {"status": "received"},
        "/disconnect-env": {},
    }

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response(answers[request.path])

    app = web.Application(client_max_size=2**28)
    app.router.add_route("*", "/{path:.*}", answer)
    return app


async def serve(kind: str, tokens: int, group: int, latency_s: float) -> None:
    """Serve both in this process until it is ended."""
    replies = prebuilt_replies(kind, tokens, group)
    inference = inference_app(replies, latency_s)
    async with serve_app(inference) as url, serve_app(api_app()) as api:
        print(json.dumps([url, api, len(replies[0])]), flush=True)
        await asyncio.Event().wait()


# -- the environment -------------------------------------------------------------------


class NullHandle:
    """A dataset object that costs nothing."""

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        return 0.0

    def __repr__(self) -> str:
        return "<null>"


class NullEnv(ReasoningGymEnv):
    """The same host side, with one constant item and a constant score."""

    async def get_next_item(self) -> Any:
        return self._messages("2 + 2?"), CONSTANT, NullHandle()

    async def score(self, rollout_group_data: Any) -> Any:
        rollouts = rollout_group_data
        return {
            "tokens": [r["tokens"] for r in rollouts],
            "masks": [r["masks"] for r in rollouts],
            "scores": [0.0 for _ in rollouts],
            "inference_logprobs": [r["logprobs"] for r in rollouts],
            "overrides": [{} for _ in rollouts],
            "group_overrides": {},
            "generation_params": {"temperature": 1.0},
        }


async def watch_loop(delays_ms: list[float]) -> None:
    """Record how late the event loop is, again and again."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(TICK_S)
        delays_ms.append(1000 * (time.perf_counter() - began - TICK_S))


@contextlib.asynccontextmanager
async def simulated(options: argparse.Namespace) -> AsyncIterator[list[Any]]:
    """Run the simulated servers; yield their URLs and the length of a reply."""
    names = ("kind", "tokens", "group", "latency")
    argv = [f"--{name}={getattr(options, name)}" for name in names]
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--serve", *argv, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield json.loads(await process.stdout.readline())
    finally:
        process.terminate()
        await process.wait()


def build_env(options: argparse.Namespace, url: str, api: str, folder: str) -> Any:
    """Return the environment that is measured."""
    config = ReasoningGymEnvConfig(
        tokenizer_name=str(TOKENIZER_FOLDER),
        rollout_server_url=api,
        use_wandb=False,
        group_size=options.group,
        total_steps=2**20,
        max_token_length=max(4096, 2 * options.tokens),
        steps_per_eval=0,
        num_eval_samples_per_task=1,
        ensure_scores_are_not_same=False,
        data_dumps_dir=folder,
        max_num_workers=options.workers,
        tasks=options.tasks.split(",") if options.tasks else None,
    )
    server = APIServerConfig(base_url=f"{url}/v1", server_type=options.kind)
    return (NullEnv if options.null else ReasoningGymEnv)(config, [server])


async def sent(env: Any, groups: int) -> None:
    """Wait until the environment has sent so many groups."""
    while env.ledger.fates["sent"] < groups * env.config.group_size:  # noqa: ASYNC110
        await asyncio.sleep(TICK_S)


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run one environment against the simulated servers; return what was found."""
    delays_ms: list[float] = []
    async with simulated(options) as (url, api, reply_bytes):
        with tempfile.TemporaryDirectory() as folder:
            env = build_env(options, url, api, folder)
            serving = asyncio.create_task(env.env_manager())
            await sent(env, WARM_UP_GROUPS)
            watching = asyncio.create_task(watch_loop(delays_ms))
            began, cpu = time.perf_counter(), time.process_time()
            await sent(env, WARM_UP_GROUPS + options.groups)
            seconds = time.perf_counter() - began
            cpu = time.process_time() - cpu
            watching.cancel()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
    quantiles = statistics.quantiles(delays_ms, n=1000)
    return {
        "reply, kB": round(reply_bytes / 1000),
        "groups/s": round(options.groups / seconds, 1),
        "CPU ms/group, main": round(1000 * cpu / options.groups, 2),
        "loop delay ms": {
            "p50": round(quantiles[499], 2),
            "p99": round(quantiles[989], 2),
            "max": round(max(delays_ms), 1),
        },
        "fates": dict(env.ledger.fates),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--groups", type=int, default=400)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--kind", choices=["vllm", "sglang"], default="vllm")
    parser.add_argument("--tasks", default="")
    parser.add_argument("--null", action="store_true")
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.serve:
        shape = (options.kind, options.tokens, options.group, options.latency)
        asyncio.run(serve(*shape))
    logs.start()
    found = asyncio.run(measure(options))
    for name, value in found.items():
        print(f"{name:<26} {value}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
