"""Many groups through `serve` with faults throughout, and every rollout accounted for.

    python benchmarks/soak.py [--groups 20000] [--restarts 20] [--kills 0] [--json FILE]

Two inference servers spoil a part of their replies and are stopped and started again in
turn; the API spoils a part of its replies and is restarted with an empty state. With
`--kills`, `serve` is killed so many times and continues from its checkpoint. At the end
the rollouts that were queried are compared with their outcomes, and every dumped line
is read. The memory of `serve` and of its workers is taken every 1,000 groups.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import dataclasses
import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.throughput import Processes
from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER
from rg_env.demo.child_process import RUN_API, running_program
from rg_env.demo.inference_server import build_app, serve_app
from rg_env.demo.stand_in_trainer import WITHOUT_END, Groups, TrainerConfig, trained_api
from rg_env.installation import PROJECT
from rg_env.rollouts.json_encoding import read_groups
from tests.support.faults import Script
from tests.support.inference_server import FaultyServer
from tests.support.spoilt_api import SpoiltApi

GROUP_SIZE, GROUPS_A_BATCH, MAX_TOKENS = 4, 16, 1024
SAVE_EVERY = 5
FAULT_RATE, API_FAULT_RATE, LATENCY_MS = 0.1, 0.02, 50.0
POLL_S, DRAIN_S, END_S = 0.2, 2.5, 60.0
SERVER_FAULTS = (
    *(
        "status_500",
        "status_503",
        "status_429",
        "reset",
        "not_json",
        "slow",
        "truncated",
    ),
    *("no_choices", "too_few", "too_many", "abort_one", "null_logprob", "empty_one"),
    *("nasty_text", "endless_text", "hang"),
)
API_FAULTS = (
    "status_500",
    "status_503",
    "reset",
    "reply_lost",
    "faulted_after",
    "slow",
)

Counts = collections.Counter[str]


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


def digest(value: Any) -> bytes:
    """Return what tells a value from others, in little memory."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


class Spoilt:
    """An application that spoils replies, on a port that it keeps when restarted."""

    def __init__(self, make_app: Callable[[], web.Application]) -> None:
        self._port, self._make_app = free_port(), make_app
        self.url = f"http://127.0.0.1:{self._port}"
        self._running = contextlib.AsyncExitStack()

    async def start(self) -> None:
        serving = serve_app(self._make_app(), port=self._port, notices_departures=True)
        await self._running.enter_async_context(serving)

    async def stop(self) -> None:
        await self._running.aclose()


class Api:
    """The real API with its trainer, which both forget everything when restarted.

    Attributes:
        received: Groups that trainers got in all runs, invalid ones, and batches.
    """

    def __init__(self, folder: Path) -> None:
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._config = TrainerConfig(
            api_url=self.url,
            batch_size=GROUP_SIZE * GROUPS_A_BATCH,
            group_size=GROUP_SIZE,
            max_token_len=MAX_TOKENS,
            num_steps=WITHOUT_END,
            checkpoint_dir=str(folder / "checkpoints"),
            save_checkpoint_interval=SAVE_EVERY,
        )
        self.received = Counts(groups=0, twice=0, invalid=0, batches=0)
        self._seen: set[bytes] = set()
        self._running = contextlib.AsyncExitStack()

    def _take(self, groups: Groups) -> None:
        self.received["batches"] += 1
        for group in groups:
            key = digest(group["inference_logprobs"])
            self.received.update(groups=1, twice=int(key in self._seen))
            self._seen.add(key)

    async def start(self) -> None:
        step = self.received["batches"]
        config = dataclasses.replace(self._config, starting_step=step)
        api = running_program(RUN_API, f"--port={self._port}")
        running = trained_api(config, self._take, api)
        _, self._trainer = await self._running.enter_async_context(running)

    async def stop(self) -> None:
        await self._running.aclose()
        self.received["invalid"] += self._trainer.counts.invalid_groups

    async def drained(self) -> int:
        """Wait until every whole batch is taken; return how many groups are left."""
        before = -1
        while before < self.received["groups"]:
            before = self.received["groups"]
            await asyncio.sleep(DRAIN_S)
        async with aiohttp.request("GET", f"{self.url}/status") as reply:
            return int((await reply.json())["queue_size"])


def start_serve(
    folder: Path, api_url: str, servers: Sequence[str], log: Path
) -> subprocess.Popen[bytes]:
    """Start `serve` as a user does, with its output at the end of a file."""
    env = {
        "tokenizer_name": str(TOKENIZER_FOLDER),
        "rollout_server_url": api_url,
        "use_wandb": False,
        "tasks": ["gcd", "chain_sum"],
        "group_size": GROUP_SIZE,
        "max_token_length": MAX_TOKENS,
        "num_workers": 1,
        "steps_per_eval": 0,
        "total_steps": WITHOUT_END,
        "dump_rollouts": True,
        "dump_failed_rollouts": True,
        "rollout_save_score_threshold": 0.0,
        "data_dumps_dir": str(folder / "dumps"),
        "min_batch_allocation": 0.1,
        "ensure_scores_are_not_same": True,
    }
    server = {
        "model_name": "simulated",
        "server_type": "vllm",
        "api_key": "x",
        "tokenizer_name": str(TOKENIZER_FOLDER),
        "timeout": 5,
    }
    openai = [{"base_url": f"{url}/v1", **server} for url in servers]
    settings = folder / "settings.yaml"
    settings.write_text(json.dumps({"env": env, "openai": openai}))  # JSON is YAML
    entry = str(PROJECT / "reasoning_gym_environment.py")
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, entry, "serve", "--config", str(settings)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"},
        )


class Soak:
    """`serve` and all around it, what disturbs it, and the count at the end."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self._options, self._folder, self._log = options, folder, folder / "serve.log"
        self._began = time.monotonic()
        self._api = Api(folder)
        self._injected = Counts()
        self._models = [
            FaultyServer(
                self._dice(f"server {n}", options.rate, SERVER_FAULTS), LATENCY_MS
            )
            for n in range(2)
        ]
        self._servers = [Spoilt(partial(build_app, model)) for model in self._models]
        door = SpoiltApi(self._dice("door", API_FAULT_RATE, API_FAULTS), self._api.url)
        self._door = Spoilt(door.app)

    def _dice(self, who: str, rate: float, names: Sequence[str]) -> Script:
        """Return a script in which each request suffers something with a chance."""

        def fault(number: int) -> str:
            rng = random.Random(f"{who}/{number}")
            chosen = rng.choice(names) if rng.random() < rate else ""
            self._injected[chosen] += bool(chosen)
            return chosen

        return fault

    async def run(self) -> dict[str, Any]:
        await self._api.start()
        for part in (*self._servers, self._door):
            await part.start()
        self._start_serve()
        disturbing = asyncio.create_task(self._disturb())
        try:
            samples = await self._watch()
        finally:
            disturbing.cancel()
            await asyncio.gather(disturbing, return_exceptions=True)
        seconds = time.monotonic() - self._began
        self._serve.send_signal(signal.SIGTERM)
        status = await asyncio.to_thread(self._serve.wait, END_S)
        return {
            **await self._accounts(),
            "exit status": status,
            "seconds to the end": round(time.monotonic() - self._began - seconds, 1),
            "groups/s": round(samples[-1][0] / seconds, 1),
            "groups, seconds, MiB": samples,
            "tracebacks": self._log.read_text("utf-8", "replace").count("\nTraceback"),
        }

    def _start_serve(self) -> None:
        urls = [server.url for server in self._servers]
        self._serve = start_serve(self._folder, self._door.url, urls, self._log)

    async def _disturb(self) -> None:
        """Restart or kill something each time that a part of the groups has come."""
        restarts, kills = self._options.restarts, self._options.kills
        for number in range(1, restarts + kills + 1):
            due = self._options.groups * number / (restarts + kills + 1)
            while self._api.received["groups"] < due:  # noqa: ASYNC110 - it only grows
                await asyncio.sleep(POLL_S)
            # To be cancelled in the middle of a restart would leave a part ended.
            await asyncio.shield(self._restart(number, number > restarts))

    async def _restart(self, number: int, is_kill: bool) -> None:
        if is_kill:
            self._serve.kill()
            self._serve.wait()
            self._start_serve()
            return
        servers = self._servers
        part: Api | Spoilt = self._api if number % 3 == 0 else servers[number % 2]
        await part.stop()
        await part.start()

    async def _watch(self) -> list[list[float]]:
        """Wait for all groups; return groups, seconds and PSS in MiB now and then."""
        samples: list[list[float]] = []
        while True:
            groups = self._api.received["groups"]
            if groups >= self._options.every * len(samples):
                seconds = round(time.monotonic() - self._began, 1)
                tree = Processes(self._serve.pid)
                await asyncio.to_thread(tree.sample)
                samples.append([groups, seconds, round(tree.peak_mib, 1)])
                print(samples[-1], flush=True)
            if groups >= self._options.groups:
                return samples
            if self._serve.poll() is not None and not self._options.kills:
                raise RuntimeError(f"serve has ended; see {self._log}")
            await asyncio.sleep(POLL_S)

    async def _accounts(self) -> dict[str, Any]:
        """Let the trainer take the rest, stop everything, and count.

        Where nothing was lost, the difference is 0.
        """
        queued = await self._api.drained()
        await self._api.stop()
        for part in (*self._servers, self._door):
            await part.stop()
        ledger = last_ledger(self._folder)
        queried, outcomes = ledger.get("queried", 0), ledger.get("outcomes", {})
        return {
            "groups received": dict(self._api.received),
            "groups left in the queue": queued,
            "completions served": sum(model.completions for model in self._models),
            "rollouts queried": queried,
            "outcomes": outcomes,
            "queried - sum of outcomes": queried - sum(outcomes.values()),
            "faults injected": dict(+self._injected),
            "dump files": dict(read_dumps(self._folder / "dumps")),
        }


# -- what is left ----------------------------------------------------------------------


def last_ledger(folder: Path) -> dict[str, Any]:
    """Return the ledger of the newest checkpoint; {} without one."""
    files = (folder / "checkpoints").rglob("step-*.json")
    newest = max(files, key=lambda path: path.stat().st_mtime_ns, default=None)
    state: dict[str, Any] = {} if newest is None else json.loads(newest.read_text())
    ledger: dict[str, Any] = state.get("metrics", {})
    return ledger


def read_dumps(folder: Path) -> Counts:
    """Read every dumped line; return the files and groups by what they are."""
    found = Counts(broken=0, twice=0)
    seen: set[bytes] = set()
    for path in sorted(folder.rglob("*_rollouts_*.jsonl*")):
        found["unfinished" if path.suffix == ".part" else "complete"] += 1
        try:
            for group in read_groups(path):
                key = digest(group)
                found["unsent" if "UNSENT" in path.name else "groups"] += 1
                found["twice"] += key in seen
                seen.add(key)
        except ValueError:
            found["broken"] += 1
        found["broken"] += not path.read_bytes().endswith(b"\n")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--groups", type=int, default=20_000)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--kills", type=int, default=0, help="of serve")
    parser.add_argument("--every", type=int, default=1000, help="groups a sample")
    parser.add_argument("--rate", type=float, default=FAULT_RATE, help="spoilt replies")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(Soak(options, Path(folder)).run())
    for name, value in found.items():
        print(f"{name:<30} {value}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
