"""Runs `python FILE ARGS` and notes how late the event loop of its process is.

    python loop_probe.py REPORT FILE serve --env.x y

While an event loop of its main thread runs, a line of REPORT every second is the JSON
of pairs: a time on the monotonic clock in seconds, and how late a sleep of 5 ms ended
then, in ms. Only the standard library is imported before the file itself.
"""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

TICK_S = 0.005
WRITE_EVERY_S = 1.0


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
            delays = []
            written = now


def main() -> None:
    report = Path(sys.argv[1]).resolve()
    plain = asyncio.BaseEventLoop.run_until_complete
    watched = weakref.WeakSet[asyncio.BaseEventLoop]()

    def run(loop: asyncio.BaseEventLoop, main: Any) -> Any:
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or loop in watched:  # which it runs again to close
            return plain(loop, main)
        watched.add(loop)
        watching = loop.create_task(watch(report))
        try:
            return plain(loop, main)
        finally:
            watching.cancel()

    asyncio.BaseEventLoop.run_until_complete = run
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
