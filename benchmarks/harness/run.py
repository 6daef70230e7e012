"""One run: an environment between the real API, a trainer and an inference server.

API, trainer and inference server are up before the environment starts. After some
groups to warm up, everything is counted over a window; then the inference server holds
its answers back until nothing more reaches the API, so that what was generated and not
delivered can be told from what is under way; then the environment is ended.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks.harness.setting import Contestant, Setting
from benchmarks.harness.stage import Snapshot, Stage, set_up

POLL_S = 0.1
START_TIMEOUT_S = 120.0
QUIET_S = 1.5
DRAIN_TIMEOUT_S = 30.0

Say = Callable[[str], None]


async def measure(
    contestant: Contestant,
    setting: Setting,
    say: Say,
    folder: Path,
) -> dict[str, Any]:
    """Run one contestant under one setting.

    Args:
        contestant: The environment.
        setting: What to measure under.
        say: Told what happens.
        folder: For the logs of all processes.

    Returns:
        Plain values.

        - From the start of the process: `first_group_s`.
        - Of the window, as the API took them: `groups_per_s`, `rollouts_per_s`,
          `tokens_per_s` (prompts included), `of_ceiling` (of workers/latency).
        - Of the window, at the inference server: `server_idle` (share of the time
          without a request in flight), `in_flight` (mean) of `in_flight_allowed`.
        - Of the window, in the environment: `loop_ms` (how late its event loop was).
        - Of the window, on the machine: `cpu_ms_per_group` by process, `machine_ms`
          (how late an idle process was), `busy_with_others` (share of all CPU).
        - Of the whole run: `waste` in rollouts, `memory_mib` of main process and
          children, `faults` of the groups that were checked, `end`
          (status, seconds, processes left behind), what the environment last `said`
          of its rollouts, and the files `left_by_texts` that were executed.

    Raises:
        RuntimeError: Something did not start, or the environment ended.
    """
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    async with set_up(contestant, setting, folder) as (stage, began):
        first = await _until_first(stage, say)
        await _until_groups(stage, setting.warmup, START_TIMEOUT_S, say)
        start = await stage.snapshot()
        wanted = start.api["accepted"] + setting.groups
        await _until_groups(stage, wanted, setting.seconds, say)
        end = await stage.snapshot()
        waste = await _drain(stage)
        stage.sample()
        found = {
            "contestant": contestant.name,
            "setting": dataclasses.asdict(setting),
            "first_group_s": first - began,
            **_rates(setting, stage, start, end),
            "waste": waste,
            "faults": dict(stage.trainer.counts.faults),
            "memory_mib": _memory(stage),
        }
    found["end"] = [await env.stop() for env in stage.envs]
    found |= _left_in(folder)
    window = (start.api["t"], end.api["t"])
    found["loop_ms"] = loop_delays(stage.reports, *window)
    found["machine_ms"] = loop_delays([stage.control], *window)
    return found


async def _until_first(stage: Stage, say: Say) -> float:
    """Wait for the first group; return when it came, on the monotonic clock."""
    await _until_groups(stage, 1, START_TIMEOUT_S, say)
    first = (await stage.query_api())["first"]
    if first is None:
        raise RuntimeError(f"no group came within {START_TIMEOUT_S:g} s")
    return float(first)


async def _until_groups(stage: Stage, groups: int, patience_s: float, say: Say) -> None:
    """Wait until so many groups came, or until patience ends."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        for env in stage.envs:
            env.check()
        accepted = (await stage.query_api())["accepted"]
        if accepted >= groups:
            return
        say(f"{accepted} groups")
        await asyncio.sleep(POLL_S)


async def _drain(stage: Stage) -> dict[str, Any]:
    """Hold the answers back; count what was generated, and what of it arrived."""
    held = await stage.hold_server()
    size = stage.setting.group_size
    deadline = time.monotonic() + DRAIN_TIMEOUT_S
    before, since = -1, time.monotonic()
    while time.monotonic() < min(deadline, since + QUIET_S):
        counts = await stage.query_api()
        arrived = counts["accepted"] + counts["buffered"] + counts["rejected"]
        if arrived != before:
            before, since = arrived, time.monotonic()
        await asyncio.sleep(POLL_S)
    made = (await stage.query_server())["completions"]
    waste = {
        "generated": made,
        "delivered": counts["accepted"] * size,
        "rejected by the API": counts["rejected"] * size,
        "stranded in the API": counts["buffered"] * size,
        "cancelled": held["cancelled_completions"],
        "truncated": held["truncated"],
        "unknown questions": held.get("unknown_questions", 0),
    }
    accounted = waste["delivered"] + waste["rejected by the API"]
    waste["dropped by the environment"] = max(
        0, made - accounted - waste["stranded in the API"]
    )
    begun = made + waste["cancelled"]
    waste["share"] = 1 - waste["delivered"] / begun if begun else 0.0
    return waste


def _rates(
    setting: Setting, stage: Stage, start: Snapshot, end: Snapshot
) -> dict[str, Any]:
    """Return what happened in the window, a second and a group."""
    seconds = end.api["t"] - start.api["t"]
    groups = end.api["accepted"] - start.api["accepted"]
    each = 1000 / groups if groups else float("nan")
    served_s = end.server["t"] - start.server["t"]
    received = stage.trainer.counts
    mean_tokens = received.tokens / received.rollouts if received.rollouts else 0.0
    around = {k: end.around_s[k] - start.around_s[k] for k in end.around_s}
    main_s, children_s = end.main_s - start.main_s, end.children_s - start.children_s
    known_s = main_s + children_s + sum(around.values())
    cores = psutil.cpu_count() or 1
    in_flight_s = end.server["in_flight_s"] - start.server["in_flight_s"]
    groups_per_s = groups / seconds
    return {
        "seconds": seconds,
        "groups": groups,
        "groups_per_s": groups_per_s,
        "rollouts_per_s": groups_per_s * setting.group_size,
        "tokens_per_s": groups_per_s * setting.group_size * mean_tokens,
        "of_ceiling": setting.ceiling and groups_per_s / setting.ceiling,
        "server_idle": (end.server["idle_s"] - start.server["idle_s"]) / served_s,
        "in_flight": in_flight_s / served_s,
        "in_flight_allowed": setting.workers * setting.instances,
        "cpu_ms_per_group": {
            "main": main_s * each,
            "children": children_s * each,
            **{name: spent * each for name, spent in around.items()},
        },
        "cores_used_by_main": main_s / seconds,
        "machine_busy": (end.machine_s - start.machine_s) / seconds / cores,
        "busy_with_others": max(
            0.0, (end.machine_s - start.machine_s - known_s) / seconds / cores
        ),
    }


def loop_delays(
    reports: Sequence[Path], start: float, end: float
) -> dict[str, float | int]:
    """Return how late the event loops were in a window of the monotonic clock.

    Returns:
        p50, p99 and max in milliseconds, the number of samples, and the maximum before
        the window.

    Raises:
        RuntimeError: The probe saw no loop in the window.
    """
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


def _left_in(folder: Path) -> dict[str, Any]:
    """Return the last line of each log about outcomes, and the number of files left."""
    words = []
    for log in sorted(folder.glob("env_*.log")):
        lines = log.read_text("utf-8", errors="replace").splitlines()
        words += [line for line in lines if "rollouts queried" in line][-1:]
    left_by_texts = len(list(folder.glob("left_by_texts/*")))
    return {"said": words, "left_by_texts": left_by_texts}
