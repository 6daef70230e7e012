"""`serve` killed and terminated again and again under faults; then everything counted.

    python benchmarks/chaos.py [--kills 50] [--terms 50] [--json FILE]

Each life of the environment is ended by SIGKILL or SIGTERM at a random moment, its
setup included, and the next one continues from its checkpoint. Meanwhile inference
servers and the API are restarted under load and both spoil a part of their replies. In
the middle the disk of the dump files is full for a while: a file system of its own in
memory where that is permitted, otherwise that part is left out, which is said.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import dataclasses
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import stage
from rg_env.rollouts.dumps import read_groups

LONGEST_LIFE_S = 12.0
END_WITHIN_S = 10.0
DISK_MB = 64


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Give a folder a small disk of its own, if this user may."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder)]
    is_small = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield is_small
    finally:
        if is_small:
            umount = ["umount", "-l", str(folder)]
            subprocess.run(umount, check=False)


def fill(folder: Path) -> Path:
    """Take every byte of a disk."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return ballast


@dataclasses.dataclass
class Lives:
    """What was seen of the lives of the environment.

    Attributes:
        statuses: How often each exit status was, by signal.
        longest_end_s: From SIGTERM to the end.
        processes_left: Processes of a life that outlived it.
        tracebacks: Tracebacks in the log.
    """

    statuses: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )
    longest_end_s: float = 0.0
    processes_left: int = 0
    tracebacks: int = 0


def descendants(pid: int) -> set[int]:
    """Return the processes that a process started, and theirs."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(fields[1])
    found = {pid}
    while True:
        more = {child for child, parent in parents.items() if parent in found} - found
        if not more:
            return found - {pid}
        found |= more


async def left_of(pids: set[int]) -> int:
    """Return how many processes are still there after some patience."""
    for _ in range(50):
        alive = sum(map(is_alive, pids))
        if not alive:
            return 0
        await asyncio.sleep(0.1)
    return alive


def is_alive(pid: int) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] != "Z"


async def live(
    env: subprocess.Popen[bytes], number: signal.Signals, life_s: float, lives: Lives
) -> None:
    """Let the environment live for a while, and end it."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        await asyncio.to_thread(env.wait, life_s)
    children = descendants(env.pid)
    began = time.monotonic()
    if env.poll() is None:
        env.send_signal(number)
    try:
        status = str(await asyncio.to_thread(env.wait, 3 * END_WITHIN_S))
    except subprocess.TimeoutExpired:
        env.kill()
        env.wait()
        status = "it had to be killed"
    if number == signal.SIGTERM:
        lives.longest_end_s = max(lives.longest_end_s, time.monotonic() - began)
    lives.statuses[f"{number.name}: {status}"] += 1
    lives.processes_left += await left_of(children)


async def disturb(servers: list[stage.Program], api: stage.Api) -> None:
    """Restart servers and the API for ever."""
    rng = random.Random(1)
    while True:
        await asyncio.sleep(rng.uniform(2, 8))
        if rng.random() < 0.25:
            await api.stop()
            await asyncio.sleep(rng.uniform(0, 2))
            await api.start()
        else:
            server = rng.choice(servers)
            await asyncio.to_thread(server.stop)
            await asyncio.sleep(rng.uniform(0, 3))
            await asyncio.to_thread(server.start)


async def chaos(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run it all; return what was found."""
    rng, lives = random.Random(options.seed), Lives()
    marker = f"chaos-{uuid.uuid4()}"
    folder = folder / marker
    signals = [signal.SIGKILL] * options.kills + [signal.SIGTERM] * options.terms
    rng.shuffle(signals)
    servers = [
        stage.Program("server", f"--rate={options.rate}", f"--seed={i}")
        for i in range(2)
    ]
    dumps = folder / "dumps"
    log_path = Path(tempfile.gettempdir()) / f"{marker}.log"
    with small_disk(dumps) as has_disk, log_path.open("wb") as log:
        api = stage.Api(folder, save_every=2)
        await api.start()
        front = stage.Program("api", f"--of={api.url}", f"--rate={options.api_rate}")
        urls = [server.url for server in servers]
        disturbing = asyncio.create_task(disturb(servers, api))
        ballast: Path | None = None

        def start() -> subprocess.Popen[bytes]:
            return stage.start_serve(folder, front.url, urls, log, total_steps=10**9)

        try:
            for i, number in enumerate(signals):
                if has_disk and i == len(signals) // 3:
                    ballast = fill(dumps)
                if ballast is not None and i == len(signals) // 2:
                    ballast.unlink()
                    ballast = None
                await live(start(), number, rng.uniform(0, options.life), lives)
                if disturbing.done():
                    disturbing.result()
        finally:
            disturbing.cancel()
            await asyncio.gather(disturbing, return_exceptions=True)
        # The last life is an undisturbed one.
        for server in servers:
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(server.start)
        await api.stop()
        await api.start()
        await live(start(), signal.SIGTERM, LONGEST_LIFE_S, lives)
        await api.drain()
        queued = await api.queue_size()
        await api.stop()
        ledger = stage.last_ledger(folder)
        served = sum((server.counts() for server in servers), start=front.counts())
        for program in (*servers, front):
            program.stop()
        files = stage.look_at_files(dumps)
        indices = collections.Counter(
            group["index"]
            for path in dumps.glob("*.jsonl")
            for group in read_groups(path)
        )
    said = log_path.read_text("utf-8", "replace")
    lives.tracebacks = said.count("Traceback")
    fates = ledger.get("fates", {})
    return {
        "lives": {**vars(lives), "statuses": dict(lives.statuses)},
        "disk was full for a while": has_disk,
        "groups received": api.receipts.groups,
        "groups received twice": api.receipts.twice,
        "groups received invalid": api.receipts.invalid,
        "groups left in the queue": queued,
        "groups acknowledged to serve": served["acknowledged"],
        "groups accepted by the API": served["accepted"],
        "completions served": served["choices"],
        "rollouts asked": ledger.get("asked"),
        "fates": fates,
        "asked - sum of fates": ledger.get("asked", 0) - sum(fates.values()),
        "sent - acknowledged": fates.get("sent", 0)
        - stage.GROUP * served["acknowledged"],
        "dump files": dataclasses.asdict(files),
        "items dumped": len(indices),
        "items dumped again": sum(indices.values()) - len(indices),
        "processes left": len(list(stage.our_processes(marker))),
        "log": str(log_path),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chaos and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--terms", type=int, default=50)
    parser.add_argument("--life", type=float, default=LONGEST_LIFE_S, help="seconds")
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--api_rate", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(chaos(options, Path(folder)))
    for name, value in found.items():
        print(f"{name:<30} {value}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
