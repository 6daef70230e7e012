"""Runs `python FILE ARGS` and notes how late the event loop of its process is.

    python loop_probe.py REPORT FILE serve --env.x y

From its first event loop on, a line of REPORT every second is the JSON of pairs: a time
on the monotonic clock in seconds, and how late a sleep of 5 ms ended then, in ms. Only
the standard library is imported before the file itself.
"""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

TICK_S, WRITE_EVERY_S = 0.005, 1.0


async def watch(report: Path) -> None:
    delays: list[tuple[float, float]] = []
    written = time.monotonic()
    while True:
        began = time.monotonic()
        await asyncio.sleep(TICK_S)
        now = time.monotonic()
        delays.append((round(now, 4), round(1e3 * (now - began - TICK_S), 3)))
        if now - written >= WRITE_EVERY_S:
            with report.open("a") as lines:
                lines.write(json.dumps(delays) + "\n")
            delays, written = [], now


async def with_watch(main: Coroutine[Any, Any, Any], report: Path) -> Any:
    watching = asyncio.ensure_future(watch(report))
    try:
        return await main
    finally:
        watching.cancel()


def main() -> None:
    report = Path(sys.argv[1]).resolve()
    runner: Any = getattr(asyncio, "Runner", None)  # `asyncio.run` is one, from 3.11 on
    holder, name = (asyncio, "run") if runner is None else (runner, "run")
    plain = getattr(holder, name)

    def run(*args: Any, **options: Any) -> Any:
        setattr(holder, name, plain)  # other loops are as they are
        *before, main = args
        return plain(*before, with_watch(main, report), **options)

    setattr(holder, name, run)
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
