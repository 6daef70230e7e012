"""One run: an environment between the real API, a trainer and an inference server.

API, trainer and inference server are up before the environment starts. After some
groups to warm up, everything is counted over a window; then the environment is ended.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks.harness.setting import Contestant, Setting
from benchmarks.harness.stage import Snapshot, Stage, set_up

POLL_S = 0.1
START_TIMEOUT_S = 120.0


async def measure(
    contestant: Contestant, setting: Setting, folder: Path
) -> dict[str, Any]:
    """Run one contestant under one setting.

    Returns:
        - From the start of the process: `first_group_s`.
        - Of the window: `groups` and `groups_per_s` as the API took them,
          `server_idle` (share of the time without a request at the inference server),
          `loop_ms` (how late the environment's event loop was), `cpu_ms_per_group` by
          process, and `busy_with_others` (share of all CPU).
        - Of the whole run: `memory_mib` of main process and children, `faults` of the
          groups that were checked, `unknown_questions`, `end` (status, seconds,
          processes left behind), and what the environment last `said` of its rollouts.

    Raises:
        RuntimeError: Something did not start, or the environment ended.
    """
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    async with set_up(contestant, setting, folder) as (stage, began):
        first = await _until_first(stage)
        await _until_groups(stage, setting.warmup, START_TIMEOUT_S)
        start = await stage.snapshot()
        wanted = start.api["accepted"] + setting.groups
        await _until_groups(stage, wanted, setting.seconds)
        end = await stage.snapshot()
        found = {
            "contestant": contestant.name,
            "setting": dataclasses.asdict(setting),
            "first_group_s": first - began,
            **_rates(start, end),
            "unknown_questions": end.server.get("unknown_questions", 0),
            "faults": dict(stage.trainer.counts.faults),
            "memory_mib": _memory(stage),
        }
    found["end"] = [await env.stop() for env in stage.envs]
    found["said"] = _said_in(folder)
    found["loop_ms"] = loop_delays(stage.reports, start.api["t"], end.api["t"])
    return found


async def _until_first(stage: Stage) -> float:
    """Wait for the first group; return when it came, on the monotonic clock."""
    await _until_groups(stage, 1, START_TIMEOUT_S)
    first = (await stage.query_api())["first"]
    if first is None:
        raise RuntimeError(f"no group came within {START_TIMEOUT_S:g} s")
    return float(first)


async def _until_groups(stage: Stage, groups: int, patience_s: float) -> None:
    """Wait until so many groups came, or until patience ends."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        for env in stage.envs:
            env.check()
        accepted = (await stage.query_api())["accepted"]
        if accepted >= groups:
            return
        await asyncio.sleep(POLL_S)


def _rates(start: Snapshot, end: Snapshot) -> dict[str, Any]:
    """Return what happened in the window, a second and a group."""
    seconds = end.api["t"] - start.api["t"]
    groups = end.api["accepted"] - start.api["accepted"]
    served_s = end.server["t"] - start.server["t"]
    spent_s = {name: end.cpu_s[name] - start.cpu_s[name] for name in end.cpu_s}
    others_s = end.machine_s - start.machine_s - sum(spent_s.values())
    each = 1000 / groups if groups else float("nan")
    return {
        "seconds": seconds,
        "groups": groups,
        "groups_per_s": groups / seconds,
        "server_idle": (end.server["idle_s"] - start.server["idle_s"]) / served_s,
        "cpu_ms_per_group": {name: each * s for name, s in spent_s.items()},
        "busy_with_others": max(0.0, others_s / seconds / (psutil.cpu_count() or 1)),
    }


def loop_delays(
    reports: Sequence[Path], start: float, end: float
) -> dict[str, float | int]:
    """Return how late event loops were in a window of the monotonic clock, in ms."""
    lines = [json.loads(x) for r in reports for x in r.read_text("utf-8").splitlines()]
    delays = [delay for line in lines for delay in line["delays"]]
    inside = [late for t, late in delays if start <= t <= end]
    if len(inside) < 2:
        raise RuntimeError("the probe saw no event loop in the environment's process")
    cuts = statistics.quantiles(inside, n=100)
    return {
        "p50": cuts[49],
        "p99": cuts[98],
        "max": max(inside),
        "samples": len(inside),
        "max_before": max((late for t, late in delays if t < start), default=0.0),
    }


def _memory(stage: Stage) -> dict[str, float]:
    trees = [env.tree for env in stage.envs]
    return {
        "peak_pss": sum(tree.peak_pss_mib for tree in trees),
        "final_pss": sum(tree.pss_mib for tree in trees),
    }


def _said_in(folder: Path) -> list[str]:
    """Return the last line of each log about outcomes."""
    words = []
    for log in sorted(folder.glob("env_*.log")):
        lines = log.read_text("utf-8", errors="replace").splitlines()
        words += [line for line in lines if "rollouts queried" in line][-1:]
    return words
