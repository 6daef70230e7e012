"""The stage of the soak and the chaos run: servers, API, trainer, environment.

Everything is a process of its own and real, except for the model, which is simulated,
and the trainer, which trains nothing. The environment reaches the API through
`tests/faulty.py`, which spoils some of its requests; the trainer asks the API itself.
"""

from __future__ import annotations

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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from rg_env.demo.api import running_api  # noqa: E402
from rg_env.demo.engine import TOKENIZER_FOLDER  # noqa: E402
from rg_env.demo.trainer import (  # noqa: E402
    StandInTrainer,
    TrainerConfig,
    TrainerError,
    TrainerStep,
)
from rg_env.rollouts.dumps import read_groups  # noqa: E402

GROUP = 4
GROUPS_A_BATCH = 16
MAX_TOKENS = 1024
TASKS = "gcd,chain_sum"
GUARD_S = 60.0

PROGRAM = str(ROOT / "reasoning_gym_environment.py")
FAULTY = str(ROOT / "tests" / "faulty.py")


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


def get_json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as reply:  # noqa: S310 - ours
        return json.load(reply)


class Program:
    """A process of `tests/faulty.py` on a port that it keeps when restarted.

    Attributes:
        url: Where it is.
        past: Sums of the counts of the processes that are gone.
    """

    def __init__(self, *argv: str) -> None:
        self._argv = argv
        self._port = free_port()
        self._process: subprocess.Popen[str] | None = None
        self.past: collections.Counter[str] = collections.Counter()
        self.start()

    def start(self) -> None:
        command = [sys.executable, FAULTY, *self._argv, f"--port={self._port}"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().split()[-1]

    def counts(self) -> collections.Counter[str]:
        """Return its sums, those of its former lives included."""
        now = get_json(f"{self.url}/stats") if self._process is not None else {}
        flat = {k: v for k, v in now.items() if isinstance(v, int)}
        return self.past + collections.Counter(flat | now.get("injected", {}))

    def stop(self, *, kill: bool = False) -> None:
        if self._process is None:
            return
        if not kill:
            self.past = self.counts()
        process, self._process = self._process, None
        process.kill() if kill else process.terminate()
        process.wait(GUARD_S)
        if process.stdout is not None:
            process.stdout.close()


@dataclasses.dataclass
class Receipts:
    """What the trainer has got, from all its lives.

    Attributes:
        groups: Groups in its batches.
        twice: Groups that it got a second time.
        invalid: Groups that it could not train on.
        steps: Batches.
    """

    groups: int = 0
    twice: int = 0
    invalid: int = 0
    steps: int = 0
    _seen: set[str] = dataclasses.field(default_factory=set)

    def take(self, step: TrainerStep) -> None:
        """Count a batch; a group is known by its log-probabilities."""
        self.steps += 1
        for group in step.groups:
            key = json.dumps(group["inference_logprobs"])
            self.groups += 1
            self.twice += key in self._seen
            self._seen.add(key)


class Api:
    """The real API with its trainer, which both forget everything when restarted.

    Attributes:
        url: Where it is, always the same.
        receipts: What the trainer has got.
        lost: Groups that lay in the API's queue when it was stopped.
    """

    def __init__(self, folder: Path, save_every: int = 5) -> None:
        self._folder = folder
        self._save_every = save_every
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.receipts = Receipts()
        self._life = contextlib.AsyncExitStack()
        self._training: asyncio.Task[None] | None = None
        self._trainer: StandInTrainer | None = None

    async def start(self) -> None:
        await self._life.enter_async_context(running_api(self._port))
        config = TrainerConfig(
            api_url=self.url,
            batch_size=GROUP * GROUPS_A_BATCH,
            group_size=GROUP,
            max_token_len=MAX_TOKENS,
            num_steps=10**9,
            checkpoint_dir=str(self._folder / "checkpoints"),
            save_checkpoint_interval=self._save_every,
            starting_step=self.receipts.steps,
        )
        self._trainer = StandInTrainer(config, self.receipts.take)
        self._training = asyncio.create_task(self._train(self._trainer))

    async def _train(self, trainer: StandInTrainer) -> None:
        with contextlib.suppress(TrainerError):
            await trainer.run(10**9)

    async def queue_size(self) -> int:
        status = await asyncio.to_thread(get_json, f"{self.url}/status")
        return int(status["queue_size"])

    async def drain(self) -> None:
        """Wait until the trainer has taken every whole batch."""
        while True:
            before = self.receipts.groups
            await asyncio.sleep(2.5)
            if self.receipts.groups == before:
                return

    async def stop(self) -> None:
        if self._training is not None:
            self._training.cancel()
            await asyncio.gather(self._training, return_exceptions=True)
        if self._trainer is not None:
            self.receipts.invalid += self._trainer.counts.invalid_groups
        self._trainer = self._training = None
        await self._life.aclose()
        self._life = contextlib.AsyncExitStack()


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
        [sys.executable, PROGRAM, "serve", "--config", str(settings)],
        stdout=log,
        stderr=subprocess.STDOUT,
        env=environ,
    )


@dataclasses.dataclass
class Files:
    """What lies in a dump folder.

    Attributes:
        complete: Complete files.
        unfinished: Files that still have the other suffix.
        groups: Valid lines.
        broken: Lines that are none.
        twice: Groups that were dumped a second time.
    """

    complete: int = 0
    unfinished: int = 0
    groups: int = 0
    broken: int = 0
    twice: int = 0


def look_at_files(folder: Path) -> Files:
    """Read every dumped line."""
    found, seen = Files(), set()
    for path in sorted(folder.glob("*.jsonl*")):
        is_part = path.suffix == ".part"
        found.unfinished += is_part
        found.complete += not is_part
        try:
            for group in read_groups(path):
                key = json.dumps(group, sort_keys=True)
                found.groups += 1
                found.twice += key in seen
                seen.add(key)
        except ValueError:
            found.broken += 1
        found.broken += bool(path.stat().st_size) and not ends_whole(path)
    return found


def ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


def last_ledger(folder: Path) -> dict[str, Any]:
    """Return the ledger of the newest checkpoint; {} without one."""
    files = sorted(
        (folder / "checkpoints").rglob("step-*.json"), key=lambda p: p.stat().st_mtime
    )
    if not files:
        return {}
    metrics: dict[str, Any] = json.loads(files[-1].read_text())["metrics"]
    return metrics


def our_processes(marker: str) -> Iterator[int]:
    """Yield the living processes whose command or environment names a marker."""
    for proc in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            text = (proc / "cmdline").read_bytes() + (proc / "environ").read_bytes()
            if marker.encode() in text and int(proc.name) != os.getpid():
                yield int(proc.name)
