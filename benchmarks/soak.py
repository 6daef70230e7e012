"""Many groups through `serve` with faults throughout, and every rollout accounted for.

    python benchmarks/soak.py [--groups 20000] [--restarts 20]

Two inference servers spoil a part of their replies and are stopped and started again in
turn; the API spoils a part of its replies and is restarted with an empty state. At the
end the rollouts that were queried are compared with their outcomes. The memory of
`serve` and of its workers is taken every 1,000 groups.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.throughput import Processes
from rg_env.demo.child_process import RUN_API, running_program
from rg_env.demo.stand_in_trainer import ENDLESS, Groups, TrainerConfig
from rg_env.installation import PROJECT, TOKENIZER_FOLDER
from tests.support.faults import Script
from tests.support.inference_server import InferenceServer, build_app
from tests.support.spoilt_api import SpoiltApi
from tests.support.stock_api import trained_api
from tests.support.web_apps import serve_app

GROUP_SIZE = 4
GROUPS_A_BATCH = 16
MAX_TOKENS = 1024
SERVER_FAULT_RATE = 0.1
API_FAULT_RATE = 0.02
LATENCY_MS = 50.0
POLL_S = 0.2
END_S = 60.0
SERVER_FAULTS = """status_500 status_503 status_429 reset not_json slow truncated hang
no_choices too_few too_many abort_one null_logprob empty_one nasty_text endless_text"""
API_FAULTS = "status_500 status_503 reset reply_lost faulted_after slow"


def dice(who: str, rate: float, names: str, injected: Counter[str]) -> Script:
    """Return a script in which each request suffers something with a chance."""

    def fault(number: int) -> str:
        rng = random.Random(f"{who}/{number}")
        chosen = rng.choice(names.split()) if rng.random() < rate else ""
        injected[chosen] += bool(chosen)
        return chosen

    return fault


class Part:
    """What listens on a port that it keeps when it is restarted."""

    def __init__(self, run: Callable[[int], AbstractAsyncContextManager[Any]]) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            self._port: int = unused.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._run = run
        self._running = contextlib.AsyncExitStack()

    async def start(self) -> None:
        await self._running.enter_async_context(self._run(self._port))

    async def stop(self) -> None:
        await self._running.aclose()

    async def restart(self) -> None:
        await self.stop()
        await self.start()


def spoilt(make_app: Callable[[], web.Application]) -> Part:
    return Part(lambda port: serve_app(make_app(), port))


class Trainer:
    """Takes batches from the real API; `received` counts groups, batches and faults."""

    def __init__(self, folder: Path) -> None:
        self._config = TrainerConfig(
            api_url="",
            batch_size=GROUP_SIZE * GROUPS_A_BATCH,
            group_size=GROUP_SIZE,
            max_token_len=MAX_TOKENS,
            num_steps=ENDLESS,
            checkpoint_dir=str(folder / "checkpoints"),
            save_checkpoint_interval=5,
        )
        self.received = Counter(groups=0, invalid=0, batches=0)

    def _take(self, groups: Groups) -> None:
        self.received.update(batches=1, groups=len(groups))

    @contextlib.asynccontextmanager
    async def run(self, port: int) -> Any:
        config = dataclasses.replace(
            self._config, starting_step=self.received["batches"]
        )
        api = running_program(*RUN_API, f"--port={port}")
        async with trained_api(config, self._take, api=api) as (_, trainer):
            yield
        self.received["invalid"] += trainer.counts.invalid_groups


def start_serve(
    folder: Path, api_url: str, servers: Sequence[str]
) -> subprocess.Popen[bytes]:
    """Start `serve` as a user does, with its output in a file."""
    env = {
        "tokenizer_name": str(TOKENIZER_FOLDER),
        "rollout_server_url": api_url,
        "use_wandb": False,
        "tasks": ["gcd", "chain_sum"],
        "group_size": GROUP_SIZE,
        "max_token_length": MAX_TOKENS,
        "num_workers": 1,
        "steps_per_eval": 0,
        "total_steps": ENDLESS,
        "dump_rollouts": True,
        "data_dumps_dir": str(folder / "dumps"),
    }
    openai = [
        {"base_url": f"{url}/v1", "model_name": "spoilt", "timeout": 5}
        for url in servers
    ]
    settings = folder / "settings.yaml"
    settings.write_text(json.dumps({"env": env, "openai": openai}))  # JSON is YAML
    entry = str(PROJECT / "reasoning_gym_environment.py")
    with (folder / "serve.log").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, entry, "serve", "--config", str(settings)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"},
        )


async def disturb(
    received: Counter[str], parts: Sequence[Part], groups: int, restarts: int
) -> None:
    """Restart the parts in turn, each time that a part of the groups has come."""
    for number in range(1, restarts + 1):
        due = groups * number / (restarts + 1)
        while received["groups"] < due:  # noqa: ASYNC110 - it only grows
            await asyncio.sleep(POLL_S)
        # To be cancelled in the middle of a restart would leave a part ended.
        await asyncio.shield(parts[number % len(parts)].restart())


async def watch(
    serve: subprocess.Popen[bytes], received: Counter[str], groups: int
) -> list[list[float]]:
    """Wait for all groups; return groups, seconds and PSS in MiB now and then."""
    began = time.monotonic()
    samples: list[list[float]] = []
    while True:
        if received["groups"] >= 1000 * len(samples):
            tree = Processes(serve.pid)
            await asyncio.to_thread(tree.sample)
            seconds = round(time.monotonic() - began, 1)
            samples.append([received["groups"], seconds, round(tree.peak_mib, 1)])
            print(samples[-1], flush=True)
        if received["groups"] >= groups:
            return samples
        if serve.poll() is not None:
            raise RuntimeError("serve has ended")
        await asyncio.sleep(POLL_S)


async def soak(groups: int, restarts: int, folder: Path) -> dict[str, Any]:
    """Run everything until that many groups have come; return what was counted.

    Where nothing was lost, the difference of rollouts and outcomes is 0.
    """
    injected: Counter[str] = Counter()
    trainer = Trainer(folder)
    api = Part(trainer.run)
    scripts = [
        dice(f"server {n}", SERVER_FAULT_RATE, SERVER_FAULTS, injected)
        for n in range(2)
    ]
    models = [InferenceServer(script, LATENCY_MS) for script in scripts]
    servers = [spoilt(partial(build_app, model)) for model in models]
    script = dice("door", API_FAULT_RATE, API_FAULTS, injected)
    door = spoilt(SpoiltApi(script, api.url).app)
    for part in (api, *servers, door):
        await part.start()
    serve = start_serve(folder, door.url, [server.url for server in servers])
    disturbing = asyncio.create_task(
        disturb(trainer.received, [api, *servers], groups, restarts)
    )
    try:
        samples = await watch(serve, trainer.received, groups)
    finally:
        disturbing.cancel()
        await asyncio.gather(disturbing, return_exceptions=True)
        serve.send_signal(signal.SIGTERM)
        status = await asyncio.to_thread(serve.wait, END_S)
    for part in (api, *servers, door):
        await part.stop()
    ledger = last_ledger(folder)
    queried = ledger["queried"]
    outcomes = ledger["outcomes"]
    return {
        "groups received": dict(trainer.received),
        "completions served": sum(model.completions for model in models),
        "rollouts queried": queried,
        "outcomes": outcomes,
        "queried - sum of outcomes": queried - sum(outcomes.values()),
        "faults injected": dict(+injected),
        "exit status": status,
        "groups, seconds, MiB": samples,
        "tracebacks": (folder / "serve.log").read_bytes().count(b"\nTraceback"),
    }


def last_ledger(folder: Path) -> dict[str, Any]:
    """Return the ledger of the newest checkpoint."""
    files = (folder / "checkpoints").rglob("step-*.json")
    newest = max(files, key=lambda path: path.stat().st_mtime_ns)
    ledger: dict[str, Any] = json.loads(newest.read_text())["metrics"]
    return ledger


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--groups", type=int, default=20_000)
    parser.add_argument("--restarts", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(soak(options.groups, options.restarts, Path(folder)))
    for name, value in found.items():
        print(f"{name:<30} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
