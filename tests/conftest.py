"""What every test stands on: the import path, and no network by accident."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    from rg_env.demo.api import running_api

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
