"""`serve` killed and terminated again and again under faults; then everything counted.

    python benchmarks/chaos.py [--kills 50] [--terms 50] [--json FILE]
    python benchmarks/chaos.py --matrix [--json FILE]

Each run of the environment is ended by SIGKILL or SIGTERM at a random moment, its
setup included, and the next one continues from its checkpoint. Meanwhile inference
servers and the API are restarted under load and both spoil a part of their replies. In
the middle the disk of the dump files is full for a while: a file system of its own in
memory where that is permitted, otherwise that part is left out, which is said.

With `--matrix`: a single `serve`, one of two shards, both of them, and the API with its
trainer are killed and started again, with and without checkpoints and a minimum
allocation. Each has the seconds until the trainer has batches again, or null.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import dataclasses
import functools
import itertools
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import disturbed, findings
from rg_env.rollouts.json_encoding import read_groups

LONGEST_RUN_S = 9.0
LAST_RUN_S = 15.0
END_WITHIN_S = 10.0
LEFT_PATIENCE_S = 5.0
DISK_MB = 64
BATCHES_AFTER, BATCHES_WITHIN_S = 10, 60.0
"""More batches than can have been queued at the kill."""

LOST = re.compile(r": (\d+) groups were lost")


class Disk:
    """A small disk of its own for a folder, if this user may have one.

    Attributes:
        is_small: Whether there is one.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._ballast = folder, folder / "ballast"
        size = f"size={DISK_MB}m"
        mount = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)]
        done = subprocess.run(mount, capture_output=True, check=False)
        self.is_small = done.returncode == 0

    def fill(self) -> None:
        """Take every byte of it."""
        if not self.is_small:
            return
        opened = self._ballast.open("wb", buffering=0)
        with opened as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 4096)

    def free(self) -> None:
        """Give the bytes back."""
        self._ballast.unlink(missing_ok=True)

    def remove(self) -> None:
        if self.is_small:
            umount = ["umount", "-l", str(self._folder)]
            subprocess.run(umount, check=False)


@dataclasses.dataclass
class Runs:
    """What was seen of the runs of the environment.

    Attributes:
        statuses: How often each exit status was, by signal.
        longest_end_s: From SIGTERM to the end.
        processes_left: Processes of a run that outlived it.
    """

    statuses: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )
    longest_end_s: float = 0.0
    processes_left: int = 0

    async def end_after(
        self, env: subprocess.Popen[bytes], number: signal.Signals, run_s: float
    ) -> str:
        """Let the environment run for a while, and end it; return its status."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(env.wait, run_s)
        family = findings.family_of(env.pid)
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
            self.longest_end_s = max(self.longest_end_s, time.monotonic() - began)
        self.statuses[f"{number.name}: {status}"] += 1
        left = await asyncio.to_thread(psutil.wait_procs, family[1:], LEFT_PATIENCE_S)
        self.processes_left += len(left[1])
        return status


async def disturb(system: disturbed.System) -> None:
    """Restart servers and the API."""
    rng = random.Random(1)
    while await system.pause(rng.uniform(2, 8)):
        if rng.random() < 0.25:
            await system.restart_api(rng.uniform(0, 2))
        else:
            server = rng.choice(system.servers)
            await system.restart_server(server, rng.uniform(0, 3))


async def many_runs(
    system: disturbed.System, options: argparse.Namespace, log: BinaryIO, disk: Disk
) -> Runs:
    """Begin and end the environment again and again, the last time undisturbed."""
    rng, runs, began = random.Random(options.seed), Runs(), time.monotonic()
    signals = [signal.SIGKILL] * options.kills + [signal.SIGTERM] * options.terms
    rng.shuffle(signals)
    async with system.disturbed(disturb(system)) as disturbing:
        for i, number in enumerate(signals):
            if i == len(signals) // 3:
                disk.fill()
            if i == len(signals) // 2:
                disk.free()
            run_s = rng.uniform(0, options.life)
            status = await runs.end_after(system.serve(log), number, run_s)
            findings.say(
                began,
                f"run {i + 1} of {len(signals)}: {number.name} after {run_s:.1f} s,"
                f" status {status}; {system.api.receipts.groups} groups received",
            )
            if disturbing.done():
                disturbing.result()
    for server in system.servers:
        await system.restart_server(server, 0.0)
    await system.restart_api(0.0)
    await runs.end_after(system.serve(log), signal.SIGTERM, LAST_RUN_S)
    return runs


class Case(NamedTuple):
    """What is killed in one run of the matrix, and under which settings."""

    killed: str
    save_every: int
    least: float | None


KILLED = ("serve", "one shard", "both shards", "the API")
MATRIX = [Case(*row) for row in itertools.product(KILLED, (0, 1), (None, 0.1))]


async def has_batches(api: disturbed.RestartableApi, number: int) -> float | None:
    """Wait for some more batches; return the seconds, None if they do not come."""
    began, wanted = time.monotonic(), api.receipts.steps + number
    while api.receipts.steps < wanted:
        if time.monotonic() > began + BATCHES_WITHIN_S:
            return None
        await asyncio.sleep(0.1)
    return round(time.monotonic() - began, 1)


async def after_kill(case: Case, folder: Path, log: BinaryIO) -> float | None:
    """Kill what a case says, start it again, and wait for batches."""
    server = disturbed.Restartable("tests.support.inference_server", "--rate=0")
    api = disturbed.RestartableApi(folder, case.save_every)
    count = 2 if "shard" in case.killed else 1

    def start(i: int) -> subprocess.Popen[bytes]:
        (folder / str(i)).mkdir(parents=True, exist_ok=True)
        shard = {"shard_index": i, "num_shards": count}
        least = {"min_batch_allocation": case.least, "max_batches_offpolicy": 2}
        at = (folder / str(i), api.url, [server.url], log)
        return disturbed.start_serve(*at, **shard, **least)

    await asyncio.gather(server.start(), api.start())
    envs = [start(i) for i in range(count)]
    try:
        if await has_batches(api, 3) is None:
            raise RuntimeError(f"no batch before the kill: {case}")
        if case.killed == "the API":
            await api.stop()
            await api.start()
        for i in range(count if case.killed == "both shards" else 1):
            if case.killed != "the API":
                envs[i].kill()
                envs[i].wait()
        # The other shard has none left that the API would make a batch of.
        await asyncio.sleep(2.0)
        if case.killed != "the API":
            for i in range(len(envs)):
                if envs[i].poll() is not None:
                    envs[i] = start(i)
        return await has_batches(api, BATCHES_AFTER)
    finally:
        for env in envs:
            env.kill()
            env.wait()
        await api.stop()
        await server.kill()


async def matrix(folder: Path) -> dict[str, Any]:
    """Try all cases, one after the other."""
    log_path, found = folder / "matrix.log", {}
    began = time.monotonic()
    with log_path.open("wb") as log:
        for i, case in enumerate(MATRIX):
            seconds = await after_kill(case, folder / str(i), log)
            checkpoints = "checkpoints" if case.save_every else "no checkpoints"
            name = f"{case.killed}, {checkpoints}, minimum {case.least}"
            found[name] = seconds
            findings.say(began, f"{name}: batches after {seconds} s")
    said = log_path.read_text("utf-8", "replace")
    lines = said.count("these environments are gone")
    return {"seconds to batches": found, "lines that say so": lines}


async def chaos(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run it all; return what was found."""
    log_path = Path(tempfile.gettempdir()) / f"chaos-{uuid.uuid4()}.log"
    began = time.monotonic()
    async with disturbed.System(
        folder / log_path.stem, options, save_every=2
    ) as system:
        disk = Disk(system.dumps)
        try:
            with log_path.open("wb") as log:
                runs = await many_runs(system, options, log, disk)
            found = await system.accounts()
            indices = collections.Counter(
                group["index"]
                for path in system.dumps.glob("*_rollouts_*.jsonl")
                for group in read_groups(path)
            )
        finally:
            disk.remove()
    said = log_path.read_text("utf-8", "replace")
    return {
        "runs": vars(runs)
        | {"statuses": dict(runs.statuses), "tracebacks": said.count("Traceback")},
        "disk was full for a while": disk.is_small,
        **found,
        "dump groups said lost": sum(map(int, LOST.findall(said))),
        "items dumped": len(indices),
        "items dumped again": sum(indices.values()) - len(indices),
        "seconds": round(time.monotonic() - began, 1),
        "log": str(log_path),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chaos and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--terms", type=int, default=50)
    parser.add_argument("--life", type=float, default=LONGEST_RUN_S, help="seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--matrix", action="store_true", help="every kind of kill")
    findings.add_options(parser, rate=0.05)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        work = matrix if options.matrix else functools.partial(chaos, options)
        findings.show(asyncio.run(work(Path(folder))), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
