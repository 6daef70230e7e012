"""Runs an environment's file as `python FILE ARGS` does, and watches it from inside.

    BENCH_REPORT=FILE BENCH_TELL=SOCKET python probe.py ENVIRONMENT.py serve --env.x y

Any file for the Atropos host will do; nothing of it is changed on disk. Once its event
loop runs, the probe

- wakes every 5 ms and notes how late it is,
- tells the inference server the answer to each item, so that a simulated model can be
  right in half of its completions.

The report is one JSON object a line, written once a second. Nothing but the standard
library is imported before the file itself, so that the start stays what it is.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import runpy
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

TICK_S = 0.005
WRITE_EVERY_S = 1.0
END_GRACE_S = 20.0
Method = Callable[..., Awaitable[Any]]


class Probe:
    """What is seen of one environment, and where it is written."""

    def __init__(self, report: str, tell: str) -> None:
        self._path = report
        self._tell: socket.socket | None = socket.socket(socket.AF_UNIX)
        self._tell.connect(tell)
        self._delays: list[tuple[float, float]] = []
        self._began = False

    def start(self, main: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """Wrap the first coroutine that an event loop is run for; leave the others."""
        if self._began or threading.current_thread() is not threading.main_thread():
            return main
        self._began = True
        return self._with_watch(main)

    async def _with_watch(self, main: Coroutine[Any, Any, Any]) -> Any:
        for cls in environments():
            if hasattr(cls, "get_next_item"):
                cls.get_next_item = self._telling(cls.get_next_item)
        watch = asyncio.ensure_future(self._watch())
        try:
            return await main
        finally:
            watch.cancel()
            self._write()

    async def _watch(self) -> None:
        written = time.monotonic()
        while True:
            began = time.monotonic()
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            self._delays.append((round(now, 4), round(1e3 * (now - began - TICK_S), 3)))
            if now - written >= WRITE_EVERY_S:
                written = now
                self._write()

    def _telling(self, get_next_item: Method) -> Method:
        @functools.wraps(get_next_item)
        async def telling(env: Any, *args: Any, **kwargs: Any) -> Any:
            item = await get_next_item(env, *args, **kwargs)
            self._tell_answer(entry_of(item))
            return item

        return telling

    def _tell_answer(self, entry: dict[str, Any] | None) -> None:
        if entry is None or self._tell is None:
            return
        told = {"question": entry["question"], "answer": entry.get("answer")}
        if not isinstance(told["answer"], str):
            told["task"] = task_of(entry)
            told["metadata"] = entry.get("metadata", {})
        line = json.dumps(told, default=str).encode() + b"\n"
        try:
            self._tell.sendall(line)
        except OSError:  # the harness is ending
            self._tell = None

    def _write(self) -> None:
        line = json.dumps({"delays": self._delays})
        self._delays = []
        with open(self._path, "a", encoding="utf-8") as report:  # noqa: PTH123
            report.write(line + "\n")


def environments() -> Iterator[Any]:
    """Yield the environment classes that nothing is derived from."""
    host = sys.modules.get("atroposlib.envs.base")
    open_classes = [] if host is None else [host.BaseEnv]
    while open_classes:
        cls = open_classes.pop()
        derived = cls.__subclasses__()
        open_classes += derived
        if not derived:
            yield cls


def entry_of(item: Any) -> dict[str, Any] | None:
    """Return the library's entry in an item `(messages, entry, dataset)`."""
    if isinstance(item, tuple | list) and len(item) > 1 and isinstance(item[1], dict):
        return item[1] if "question" in item[1] else None
    return None


def task_of(entry: dict[str, Any]) -> str:
    """Return the task of an entry, "?" where it does not say."""
    metadata = entry.get("metadata")
    name = metadata.get("source_dataset") if isinstance(metadata, dict) else None
    return str(name or "?")


def hook(probe: Probe) -> None:
    """Have the probe start with the first event loop of the main thread."""
    runner = getattr(asyncio, "Runner", None)
    if runner is not None:  # `asyncio.run` uses it, from Python 3.11 on
        plain_method = runner.run

        def run_method(self: Any, coro: Any, **kwargs: Any) -> Any:
            return plain_method(self, probe.start(coro), **kwargs)

        runner.run = run_method
        return
    plain_run = asyncio.run

    def run(main: Any, **kwargs: Any) -> Any:
        return plain_run(probe.start(main), **kwargs)

    asyncio.run = run


def end_with_parent() -> None:
    """End this process when the harness is gone; it holds our standard input."""
    while os.read(0, 65536):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(END_GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    report = os.environ.pop("BENCH_REPORT")
    tell = os.environ.pop("BENCH_TELL")
    hook(Probe(report, tell))
    file = os.path.abspath(sys.argv[1])  # noqa: PTH100
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(file)  # noqa: PTH120
    runpy.run_path(file, run_name="__main__")


if __name__ == "__main__":
    main()
