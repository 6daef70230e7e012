"""The environments' processes: started as a user does, watched, and ended.

An environment ends when the harness does. Whatever else it has started is remembered
while it is watched, and ended after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from rg_env.demo.child_process import read_log_end

MIB = 1024**2


async def _wait_or_kill(process: asyncio.subprocess.Process, patience_s: float) -> None:
    try:
        await asyncio.wait_for(process.wait(), patience_s)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()


class Tree:
    """What a process and its descendants use; PSS counts shared pages once.

    A descendant that has ended keeps counting with what it used when last seen.
    """

    def __init__(self, pid: int) -> None:
        self._main = psutil.Process(pid)
        self._seen: dict[int, psutil.Process] = {}
        self._cpu_s: dict[int, float] = {}
        self._own_cpu_s = 0.0
        self.pss_mib = self.peak_pss_mib = 0.0

    def sample(self) -> None:
        """Take a sample; of a process that has ended the last one stays."""
        with contextlib.suppress(psutil.NoSuchProcess):
            times = self._main.cpu_times()
            self._own_cpu_s = times.user + times.system
            children = self._main.children(recursive=True)
            self._seen.update({child.pid: child for child in children})
            pss = 0.0
            for process in (self._main, *children):
                with contextlib.suppress(psutil.NoSuchProcess):
                    pss += process.memory_full_info().pss / MIB
            for child in children:
                with contextlib.suppress(psutil.NoSuchProcess):
                    times = child.cpu_times()
                    self._cpu_s[child.pid] = times.user + times.system
            self.pss_mib = pss
            self.peak_pss_mib = max(self.peak_pss_mib, pss)

    @property
    def cpu_s(self) -> tuple[float, float]:
        """CPU seconds of the main process, and of its descendants together."""
        return self._own_cpu_s, sum(self._cpu_s.values())

    @property
    def children(self) -> list[int]:
        """Process ids of all descendants seen so far."""
        return list(self._seen)

    def left_alive(self) -> list[psutil.Process]:
        return [p for p in self._seen.values() if p.is_running() and not _is_dead(p)]


def _is_dead(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def own_cpu_s(pid: int) -> float:
    """Return the CPU seconds of one process, without its descendants."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


class Watched:
    """An environment's process, started as a user does but through the probe."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._end: dict[str, float | int | None] | None = None
        self.tree = Tree(process.pid)

    def check(self) -> None:
        """Raise `RuntimeError` if it has ended, with the end of its log."""
        status = self._process.returncode
        if status is not None:
            end = read_log_end(self._log)
            raise RuntimeError(f"the environment ended with status {status}:\n{end}")

    async def stop(self, patience_s: float = 20.0) -> dict[str, float | int | None]:
        """End it with SIGTERM, then what it has left behind; may be called twice."""
        if self._end is not None:
            return self._end
        began = time.monotonic()
        if self._process.returncode is None:
            self.tree.sample()
            self._process.terminate()
            await _wait_or_kill(self._process, patience_s)
        seconds = time.monotonic() - began
        await asyncio.sleep(0.2)
        left = self.tree.left_alive()
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._end = {
            "status": self._process.returncode,
            "seconds": seconds,
            "left_behind": len(left),
        }
        return self._end


async def start_watched(
    file: Path, argv: Sequence[str], folder: Path, log: Path, tell: Path, report: Path
) -> Watched:
    """Start `python FILE ARGV` with the probe, which tells answers and reports."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("probe.py")),
            str(file),
            *argv,
            cwd=folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            env={
                **os.environ,
                "BENCH_TELL": str(tell),
                "BENCH_REPORT": str(report),
                "HF_HUB_OFFLINE": "1",
                "TOKENIZERS_PARALLELISM": "false",
                "WANDB_MODE": "disabled",
            },
        )
    return Watched(process, log)
