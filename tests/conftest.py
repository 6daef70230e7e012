"""What every test stands on: the import path, no network by accident, nothing left."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Its plugin would import it at the end of a run that has no property, from so deep in
# the stack that Python 3.11 fails to compile it.
import hypothesis  # noqa: F401
import pytest

REPO_ROOT = Path(__file__).resolve().parents[1]

# The project is a folder and not an installed package.
sys.path.insert(0, str(REPO_ROOT))
# For `parts`, what tests are put together from.
sys.path.append(str(REPO_ROOT / "tests"))

# Set before anything imports these libraries, and inherited by every child process.
os.environ.update(
    HF_HUB_OFFLINE="1",
    TOKENIZERS_PARALLELISM="false",
    WANDB_MODE="disabled",
)

IS_CONTROLLER = "PYTEST_XDIST_WORKER" not in os.environ
if IS_CONTROLLER:
    # All temporary files of the run, pytest's and those of killed children included,
    # lie in one folder that goes with it.
    os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="reasoning-gym-tests-")
    tempfile.tempdir = None
    # Some tests run children as another user.
    Path(tempfile.gettempdir()).chmod(0o755)

WRITTEN_BY_RUNS = ("data", "data_dumps", "env_checkpoints", "wandb")
"""Folders of the repository that a run writes to and no test may."""


def written_by_runs() -> set[Path]:
    return {p for name in WRITTEN_BY_RUNS for p in (REPO_ROOT / name).rglob("*")}


WRITTEN_BEFORE = written_by_runs()
LEFT = pytest.StashKey[list[str]]()


class RootIsNoPackage:
    """Keep pytest from importing the root's `__init__.py`, and with it the host.

    That file is for Atropos. Imported before every run, it would add six seconds to
    the shortest one and make a fault in the entry fail every test.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(
        self, path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        return pytest.Dir.from_parent(parent, path=path) if path == REPO_ROOT else None


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(RootIsNoPackage())


def pytest_sessionfinish(session: pytest.Session) -> None:
    left = sorted(map(str, written_by_runs() - WRITTEN_BEFORE))
    if IS_CONTROLLER and left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        session.config.stash[LEFT] = left


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for path in config.stash.get(LEFT, []):
        terminalreporter.write_line(f"FAILED: the tests left {path}")


def pytest_unconfigure() -> None:
    if IS_CONTROLLER:
        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)


@pytest.fixture(scope="session")
def repo_root() -> Path:
    return REPO_ROOT


@pytest.fixture(scope="session")
def simulated() -> Iterator[Any]:
    """A simulated inference server that knows the items of `parts.FAST_TASKS`."""
    from parts import FAST_TASKS, Simulated

    server = Simulated("--tasks", ",".join(FAST_TASKS))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def api_url() -> Iterator[str]:
    """The address of one real Atropos API for a module, whose tests reset it."""
    from rg_env.simulation.api_process import running_api

    loop = asyncio.new_event_loop()
    api = running_api()
    yield loop.run_until_complete(api.__aenter__())
    loop.run_until_complete(api.__aexit__(None, None, None))
    loop.close()


@pytest.fixture(autouse=True)
def own_log_level() -> Iterator[None]:
    """Undo what an environment of a test does to the level of our loggers."""
    logger = logging.getLogger("rg_env")
    before = logger.level
    yield
    logger.setLevel(before)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What our loggers say, whatever level an earlier test has left them at."""
    caplog.set_level("INFO", logger="rg_env")
    return caplog
