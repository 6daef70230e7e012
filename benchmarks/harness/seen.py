"""What the probes saw: how late loops were, and where a host waited."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

SLOWEST_SHOWN = 8
UNKNOWN_TASK = "?"


def _read(reports: Iterable[Path], kind: str) -> list[Any]:
    found = []
    for report in reports:
        for line in report.read_text("utf-8").splitlines():
            found += json.loads(line).get(kind, [])
    return found


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
    delays = _read(reports, "delays")
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


def hook_times(
    reports: Sequence[Path], start: float, end: float
) -> dict[str, dict[str, float]]:
    """Return calls, mean and maximum in milliseconds of each hook in a window."""
    times: dict[str, list[float]] = {}
    for t, hook, _, took_ms in _read(reports, "calls"):
        if start <= t <= end:
            times.setdefault(hook, []).append(took_ms)
    return {
        hook: {"calls": len(of), "mean": statistics.mean(of), "max": max(of)}
        for hook, of in times.items()
    }


def slowest_tasks(reports: Sequence[Path]) -> dict[str, list[dict[str, Any]]]:
    """Return where the host waited longest in all, by hook and task."""
    spent: dict[str, dict[str, list[float]]] = {}
    for _, hook, task, took_ms in _read(reports, "calls"):
        if task != UNKNOWN_TASK:
            spent.setdefault(hook, {}).setdefault(task, []).append(took_ms)
    found = {}
    for hook, by_task in spent.items():
        ranked = sorted(by_task.items(), key=lambda pair: -sum(pair[1]))
        found[hook] = [
            {
                "task": task,
                "calls": len(times),
                "mean_ms": statistics.mean(times),
                "max_ms": max(times),
            }
            for task, times in ranked[:SLOWEST_SHOWN]
        ]
    return found
