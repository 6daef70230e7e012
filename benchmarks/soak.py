"""Many groups through `serve` with faults throughout, and a ledger to the rollout.

    python benchmarks/soak.py [--groups 20000] [--restarts 20] [--json FILE]

Two inference servers spoil a part of their replies and are killed and started again in
turn; the API spoils a part of its replies and is restarted with an empty state. At the
end it is counted: what was asked for = what was delivered + what is counted by reason,
every dumped line is valid, and no process is left behind. The memory of `serve` and of
its workers is taken every 1,000 groups.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import disturbed, findings

FAULT_RATE = 0.1
LATENCY_MS = 50.0
POLL_S = 0.2


async def disturb(system: disturbed.System, total: int, restarts: int) -> None:
    """Restart a server or the API each time that a part of the groups has come."""
    for i in range(1, restarts + 1):
        while system.api.receipts.groups < total * i / (restarts + 1):
            if not await system.pause(POLL_S):
                return
        if i % 3 == 0:
            await system.restart_api(0.0)
        else:
            await system.restart_server(system.servers[i % 2], 2.0)


async def watch(
    system: disturbed.System, env: subprocess.Popen[bytes], total: int, every: int
) -> list[dict[str, Any]]:
    """Wait until the trainer has all groups, or `serve` has ended.

    Returns:
        Groups, seconds and memory (PSS, MiB), at the beginning and after every so many
        groups.
    """
    began, samples = time.monotonic(), list[dict[str, Any]]()
    while True:
        groups = system.api.receipts.groups
        if groups >= every * len(samples) and (groups or not samples):
            memory = await asyncio.to_thread(findings.pss_mib, env.pid)
            seconds = round(time.monotonic() - began, 1)
            samples.append({"groups": groups, "seconds": seconds, **memory})
            findings.say(began, f"{groups} of {total} groups, PSS in MiB: {memory}")
        if groups >= total or env.poll() is not None:
            return samples
        await asyncio.sleep(POLL_S)


async def soak(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run it all; return what was found."""
    log_path = folder / "serve.log"
    async with disturbed.System(
        folder / f"soak-{uuid.uuid4()}", options, latency_ms=LATENCY_MS
    ) as system:
        began = time.monotonic()
        with log_path.open("wb") as log:
            env = system.serve(log, ensure_scores_are_not_same=True)
        try:
            async with system.disturbed(
                disturb(system, options.groups, options.restarts)
            ):
                samples = await watch(system, env, options.groups, options.every)
                seconds = time.monotonic() - began
            ended = time.monotonic()
            env.send_signal(signal.SIGTERM)
            status = await asyncio.to_thread(env.wait, disturbed.GUARD_S)
            end_s = time.monotonic() - ended
        finally:
            env.kill()
            env.wait()
        groups = samples[-1]["groups"]
        found = await system.accounts()
    log_lines = log_path.read_text("utf-8", "replace").splitlines()
    return found | {
        "exit status": status,
        "seconds to the end": round(end_s, 1),
        "groups/s": round(groups / seconds, 1),
        "memory": samples,
        "tracebacks": sum(line.startswith("Traceback") for line in log_lines),
        "log": log_lines[-options.show :] if options.show else [],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the soak and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=20_000)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--every", type=int, default=1000, help="groups a sample")
    parser.add_argument("--show", type=int, default=0, help="last lines of the log")
    findings.add_options(parser, FAULT_RATE)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(soak(options, Path(folder)))
    log = found.pop("log")
    findings.show(found, options.json)
    print("\n".join(log))
    return 0


if __name__ == "__main__":
    sys.exit(main())
