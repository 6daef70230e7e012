"""What the soak and the chaos run disturb: servers, API, trainer, environment.

Everything is a process of its own and real, except for the model, which is simulated,
and the trainer, which trains nothing. The environment reaches the API through a door
that spoils some of its requests; the trainer asks the API itself.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import dataclasses
import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

from benchmarks import findings
from rg_env.demo.api_process import WITHOUT_END, trained_api
from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER
from rg_env.demo.child_process import running_program
from rg_env.demo.stand_in_trainer import Groups, StandInTrainer, TrainerConfig
from rg_env.installation import PROJECT

GROUP = 4
GROUPS_A_BATCH = 16
MAX_TOKENS = 1024
TASKS = "gcd,chain_sum"
NUM_SERVERS = 2
GUARD_S = 60.0
COUNTED = ("requests", "completions", "accepted", "acknowledged")

ENTRY = str(PROJECT / "reasoning_gym_environment.py")


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


async def get_json(url: str) -> Any:
    def get() -> Any:
        with urllib.request.urlopen(url, timeout=30) as reply:  # noqa: S310 - ours
            return json.load(reply)

    return await asyncio.to_thread(get)


class Restartable:
    """A program on a port that it keeps when restarted.

    Attributes:
        url: Where it is.
    """

    def __init__(self, module: str, *argv: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._command = (module, *argv, f"--port={port}")
        self._running = contextlib.AsyncExitStack()
        self._past: collections.Counter[str] = collections.Counter()
        self._is_up = False

    async def start(self) -> None:
        await self._running.enter_async_context(running_program(*self._command))
        self._is_up = True

    async def counts(self) -> collections.Counter[str]:
        """Return its sums, those of its previous runs included."""
        now = await get_json(f"{self.url}/stats") if self._is_up else {}
        totals = {name: now[name] for name in COUNTED if name in now}
        return self._past + collections.Counter(totals | now.get("injected", {}))

    async def stop(self) -> None:
        if self._is_up:
            self._past = await self.counts()
        await self.kill()

    async def kill(self) -> None:
        """End it without asking for its counts."""
        self._is_up = False
        await self._running.aclose()
        self._running = contextlib.AsyncExitStack()


@dataclasses.dataclass
class Receipts:
    """What the trainer has got, from all its runs.

    Attributes:
        groups: Groups in its batches.
        twice: Groups that it got a second time.
        invalid: Groups that it could not train on.
        faults: What was wrong with them.
        steps: Batches.
    """

    groups: int = 0
    twice: int = 0
    invalid: int = 0
    steps: int = 0
    faults: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )
    _seen: set[bytes] = dataclasses.field(default_factory=set)

    def take(self, groups: Groups) -> None:
        """Count a batch; a group is known by its log-probabilities."""
        self.steps += 1
        for group in groups:
            key = findings.digest(group["inference_logprobs"])
            self.groups += 1
            self.twice += key in self._seen
            self._seen.add(key)


class RestartableApi:
    """The real API with its trainer, which both forget everything when restarted.

    Attributes:
        url: Where it is, always the same.
        receipts: What the trainer has got.
    """

    def __init__(self, folder: Path, save_every: int) -> None:
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._config = TrainerConfig(
            api_url=self.url,
            batch_size=GROUP * GROUPS_A_BATCH,
            group_size=GROUP,
            max_token_len=MAX_TOKENS,
            num_steps=WITHOUT_END,
            checkpoint_dir=str(folder / "checkpoints"),
            save_checkpoint_interval=save_every,
        )
        self.receipts = Receipts()
        self._running = contextlib.AsyncExitStack()
        self._trainer: StandInTrainer | None = None

    async def start(self) -> None:
        config = dataclasses.replace(self._config, starting_step=self.receipts.steps)
        _, self._trainer = await self._running.enter_async_context(
            trained_api(config, self.receipts.take, port=self._port)
        )

    async def queue_size(self) -> int:
        return int((await get_json(f"{self.url}/status"))["queue_size"])

    async def drain(self) -> None:
        """Wait until the trainer has taken every whole batch."""
        while True:
            before = self.receipts.groups
            await asyncio.sleep(2.5)
            if self.receipts.groups == before:
                return

    async def stop(self) -> None:
        await self._running.aclose()
        if self._trainer is not None:
            self.receipts.invalid += self._trainer.counts.invalid_groups
            self.receipts.faults += self._trainer.counts.faults
        self._trainer, self._running = None, contextlib.AsyncExitStack()


def start_serve(
    folder: Path, api_url: str, servers: list[str], log: Any, **changes: Any
) -> subprocess.Popen[bytes]:
    """Start `serve` as a user does, with its output in a file."""
    settings = folder / "settings.yaml"
    env = {
        "tokenizer_name": str(TOKENIZER_FOLDER),
        "rollout_server_url": api_url,
        "use_wandb": False,
        "tasks": TASKS.split(","),
        "num_eval_samples_per_task": 1,
        "group_size": GROUP,
        "max_token_length": MAX_TOKENS,
        "num_workers": 1,
        "steps_per_eval": 0,
        "total_steps": WITHOUT_END,
        "dump_rollouts": True,
        "dump_failed_rollouts": True,
        "rollout_save_score_threshold": 0.0,
        "data_dumps_dir": str(folder / "dumps"),
        "min_batch_allocation": 0.1,
        "inference_weight": 1.0,
    }
    openai = [
        {
            "base_url": f"{url}/v1",
            "model_name": "simulated",
            "server_type": "vllm",
            "api_key": "x",
            "tokenizer_name": str(TOKENIZER_FOLDER),
            "timeout": 5,
        }
        for url in servers
    ]
    # JSON is YAML.
    settings.write_text(json.dumps({"env": env | changes, "openai": openai}))
    environ = {**os.environ, "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
    return subprocess.Popen(
        [sys.executable, ENTRY, "serve", "--config", str(settings)],
        stdout=log,
        stderr=subprocess.STDOUT,
        env=environ,
    )


class System:
    """All that `serve` needs around it, what disturbs it, and the count at the end.

    Args:
        folder: Of checkpoints, dump files and settings; its name marks our processes.
        options: `rate` and `api_rate`, the shares of replies that are spoilt.
        save_every: Steps between two checkpoints.
        latency_ms: What an unspoilt reply takes.

    Attributes:
        api: The API and its trainer.
        servers: The inference servers.
        door: What spoils the API's replies.
        dumps: The folder of the dump files.
    """

    def __init__(
        self,
        folder: Path,
        options: argparse.Namespace,
        save_every: int = 5,
        latency_ms: float = 0.0,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.dumps = folder, folder / "dumps"
        self.api = RestartableApi(folder, save_every)
        self.servers = [
            Restartable(
                "tests.support.inference_server",
                f"--rate={options.rate}",
                f"--seed={i}",
                f"--latency_ms={latency_ms}",
            )
            for i in range(NUM_SERVERS)
        ]
        self.door = Restartable(
            "tests.support.spoilt_api",
            f"--of={self.api.url}",
            f"--rate={options.api_rate}",
        )
        self._calm = asyncio.Event()

    @property
    def _programs(self) -> tuple[Restartable, ...]:
        return (*self.servers, self.door)

    async def __aenter__(self) -> System:
        """Start all but the environment."""
        starts = [program.start() for program in self._programs]
        await asyncio.gather(self.api.start(), *starts)
        return self

    async def __aexit__(self, *error: object) -> None:
        """End everything."""
        await self.api.stop()
        await asyncio.gather(*(program.kill() for program in self._programs))

    def serve(self, log: Any, **changes: Any) -> subprocess.Popen[bytes]:
        """Start `serve`."""
        urls = [server.url for server in self.servers]
        return start_serve(self.folder, self.door.url, urls, log, **changes)

    # -- disturbances ------------------------------------------------------------------

    async def restart_server(self, server: Restartable, away_s: float) -> None:
        await server.stop()
        await asyncio.sleep(away_s)
        await server.start()

    async def restart_api(self, away_s: float) -> None:
        await self.api.stop()
        await asyncio.sleep(away_s)
        await self.api.start()

    async def pause(self, seconds: float) -> bool:
        """Wait; say whether what disturbs us may go on."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._calm.wait(), seconds)
        return not self._calm.is_set()

    @contextlib.asynccontextmanager
    async def disturbed(
        self, work: Coroutine[Any, Any, None]
    ) -> AsyncIterator[asyncio.Task[None]]:
        """Have something go on that ends, with no restart half done, at its `pause`."""
        task = asyncio.create_task(work)
        try:
            yield task
        finally:
            self._calm.set()
            await task

    # -- the end -----------------------------------------------------------------------

    async def accounts(self) -> dict[str, Any]:
        """Let the trainer take the rest, stop everything, and count.

        Returns:
            Name and value of each figure. Where nothing was lost, the two differences
            are 0; `serve` may not have heard of a group that the API took.
        """
        await self.api.drain()
        queued = await self.api.queue_size()
        await self.api.stop()
        served = sum(
            [await program.counts() for program in self._programs],
            start=collections.Counter[str](),
        )
        for program in self._programs:
            await program.kill()
        ledger = findings.last_ledger(self.folder)
        queried, outcomes = ledger.get("queried", 0), ledger.get("outcomes", {})
        files = await asyncio.to_thread(findings.read_dumps, self.dumps)
        return {
            "groups received": self.api.receipts.groups,
            "groups received twice": self.api.receipts.twice,
            "groups received invalid": self.api.receipts.invalid,
            "faults of those": dict(self.api.receipts.faults),
            "groups left in the queue": queued,
            "groups acknowledged to serve": served["acknowledged"],
            "groups accepted by the API": served["accepted"],
            "completions served": served["completions"],
            "rollouts queried": queried,
            "outcomes": outcomes,
            "queried - sum of outcomes": queried - sum(outcomes.values()),
            "sent - acknowledged": outcomes.get("sent", 0)
            - GROUP * served["acknowledged"],
            "faults injected": {
                name: n for name, n in sorted(served.items()) if name not in COUNTED
            },
            "dump files": dataclasses.asdict(files),
            "dump groups counted": findings.last_dump_count(self.folder),
            "processes left": len(list(findings.our_processes(self.folder.name))),
        }
