"""Many groups through `serve` with faults throughout, and a ledger to the rollout.

    python benchmarks/soak.py [--groups 20000] [--restarts 20] [--json FILE]

Two inference servers spoil a part of their replies and are killed and started again in
turn; the API spoils a part of its replies and is restarted with an empty state. At the
end it is counted: what was asked for = what was delivered + what is counted by reason,
every dumped line is valid, and no process is left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import stage

FAULT_RATE = 0.1
API_FAULT_RATE = 0.02


async def disturb(
    servers: list[stage.Program], api: stage.Api, total: int, restarts: int
) -> None:
    """Restart a server or the API each time that a part of the groups has come."""
    for i in range(1, restarts + 1):
        while api.receipts.groups < total * i / (restarts + 1):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        if i % 3 == 0:
            await api.stop()
            await api.start()
        else:
            server = servers[i % 2]
            await asyncio.to_thread(server.stop)
            await asyncio.sleep(2.0)
            await asyncio.to_thread(server.start)


async def soak(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run it all; return what was found."""
    marker = f"soak-{uuid.uuid4()}"
    (folder / marker).mkdir()
    folder = folder / marker
    rate = f"--rate={options.rate}"
    servers = [
        stage.Program("server", rate, f"--seed={i}", "--latency_s=0.05")
        for i in range(2)
    ]
    api = stage.Api(folder)
    await api.start()
    front = stage.Program("api", f"--of={api.url}", f"--rate={options.api_rate}")
    began = time.monotonic()
    log_path = folder / "serve.log"
    with log_path.open("wb") as log:
        env = stage.start_serve(
            folder,
            front.url,
            [server.url for server in servers],
            log,
            total_steps=10**9,
            ensure_scores_are_not_same=True,
        )
        disturbing = asyncio.create_task(
            disturb(servers, api, options.groups, options.restarts)
        )
        try:
            while api.receipts.groups < options.groups and env.poll() is None:
                await asyncio.sleep(0.2)
                if disturbing.done():
                    disturbing.result()
            disturbing.cancel()
            seconds = time.monotonic() - began
            env.send_signal(signal.SIGTERM)
            ended = time.monotonic()
            status = await asyncio.to_thread(env.wait, stage.GUARD_S)
            end_s = time.monotonic() - ended
        finally:
            env.kill()
            env.wait()
    await api.drain()
    queued = await api.queue_size()
    await api.stop()
    ledger = stage.last_ledger(folder)
    served = sum((server.counts() for server in servers), start=front.counts())
    for program in (*servers, front):
        program.stop()
    files = stage.look_at_files(folder / "dumps")
    await asyncio.sleep(1.0)
    return {
        "groups received": api.receipts.groups,
        "groups received twice": api.receipts.twice,
        "groups received invalid": api.receipts.invalid,
        "groups left in the queue": queued,
        "groups acknowledged to serve": served["acknowledged"],
        "groups accepted by the API": served["accepted"],
        "completions served": served["choices"],
        "rollouts asked": ledger.get("asked"),
        "fates": ledger.get("fates"),
        "asked - sum of fates": ledger["asked"] - sum(ledger["fates"].values()),
        "sent - acknowledged": ledger["fates"].get("sent", 0)
        - stage.GROUP * served["acknowledged"],
        "faults injected": {
            name: n
            for name, n in sorted(served.items())
            if name not in ("requests", "choices", "accepted", "acknowledged")
        },
        "dump files": dataclasses.asdict(files),
        "exit status": status,
        "seconds to the end": round(end_s, 1),
        "groups/s": round(api.receipts.groups / seconds, 1),
        "processes left": len(list(stage.our_processes(marker))),
        "log": log_tail(log_path, options.show),
    }


def log_tail(path: Path, lines: int) -> list[str]:
    return path.read_text("utf-8", "replace").splitlines()[-lines:] if lines else []


def main(argv: Sequence[str] | None = None) -> int:
    """Run the soak and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=20_000)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--rate", type=float, default=FAULT_RATE)
    parser.add_argument("--api_rate", type=float, default=API_FAULT_RATE)
    parser.add_argument("--show", type=int, default=0, help="last lines of the log")
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(soak(options, Path(folder)))
    log = found.pop("log")
    for name, value in found.items():
        print(f"{name:<30} {value}")
    print("\n".join(log))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
