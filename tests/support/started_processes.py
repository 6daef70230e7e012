"""Sees to it that the marker `processes` tells the truth.

`make quick` leaves out what starts a process. So a test that starts one, itself or by
a fixture, fails unless it is marked.
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
        self._fixtures: dict[Any, str] = {}
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        is_start = event in STARTS and arguments[:1] != (ASKED_BY_PYTHON,)
        if is_start and os.getpid() == self._pid:
            self._starts.append(f"{event} {arguments[:2]!r:.200}")

    def pytest_collection_finish(self) -> None:
        """What an import has started, as matplotlib's fc-list, is no test's."""
        self._starts.clear()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, Any, Any]:
        before = len(self._starts)
        try:
            return (yield)
        finally:
            if len(self._starts) > before:
                start = self._starts[before]
                self._fixtures[fixturedef] = f"fixture {fixturedef.argname}: {start}"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Function, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        starts, self._starts = self._starts, []
        if item.get_closest_marker("processes") is not None:
            return report
        if call.when == "call":
            starts += self._fixture_starts(item)
        if starts and report.passed:
            report.outcome = "failed"
            report.longrepr = (
                f"{item.name} starts a process and is not marked so; put"
                f" @pytest.mark.processes before it: {starts[0]}"
            )
        return report

    def _fixture_starts(self, item: pytest.Function) -> list[str]:
        """Return what the fixtures of a test have started, for it or earlier."""
        found = item._fixtureinfo.name2fixturedefs.values()
        return [
            self._fixtures[one]
            for all_ in found
            for one in all_
            if one in self._fixtures
        ]
