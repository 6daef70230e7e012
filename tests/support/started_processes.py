"""Fails a test that starts a process, itself or by its fixture, and is not marked so.

`make quick` leaves out what is marked `processes`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import Any

import pytest

POOL_STARTED = "tests.pool_started"
"""Raised for a pool whose workers are forked by what an earlier test has started."""

ASKED_BY_PYTHON = "uname"
"""A program that the module `platform` runs once, for whoever asks it first."""

STARTS = {
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.system",
    "subprocess.Popen",
    POOL_STARTED,
}


class StartedProcesses:
    """A plugin that notes the starts of processes, and whose they are."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._starts: list[str] = []
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        is_start = event in STARTS and arguments[:1] != (ASKED_BY_PYTHON,)
        if is_start and os.getpid() == self._pid:
            self._starts.append(f"{event} {arguments[:2]!r:.200}")

    def pytest_collection_finish(self) -> None:
        """What an import has started, as matplotlib's fc-list, is no test's."""
        self._starts.clear()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Function, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        starts, self._starts = self._starts, []
        is_marked = item.get_closest_marker("processes") is not None
        if starts and report.passed and not is_marked:
            report.outcome = "failed"
            report.longrepr = (
                f"{item.name} starts a process and is not marked so; put"
                f" @pytest.mark.processes before it: {starts[0]}"
            )
        return report
