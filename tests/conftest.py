"""What every test stands on: the import path, no network by accident, nothing left.

A test that starts a process is marked `processes`. What is dear to start is started
once for all tests of a pytest process: the fork server of the workers, the Atropos API.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import logging
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

# Its plugin would import it at the end of a run that has no property, from so deep in
# the stack that Python 3.11 fails to compile it.
import hypothesis
import pytest

REPO_ROOT = Path(__file__).resolve().parents[1]

# The project is a folder and not an installed package.
sys.path.insert(0, str(REPO_ROOT))
# What workers import by name; they can read no other folder of the tests.
sys.path.append(str(REPO_ROOT / "tests" / "support" / "jobs"))

from tests.support.shared_fork_server import SharedForkServers  # noqa: E402

# Set before anything imports these libraries, and inherited by every child process.
os.environ.update(
    HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", WANDB_MODE="disabled"
)

# Tables are as in a pipe, although xdist tells its workers the width of a terminal.
os.environ.pop("COLUMNS", None)

# On a busy machine an example may take long, which is no fault of what it tries.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

# Ignored under nohup and in the background of a shell; what is tested hears them.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

IS_CONTROLLER = "PYTEST_XDIST_WORKER" not in os.environ
if IS_CONTROLLER:
    # All temporary files of the run, pytest's and those of killed children included,
    # lie in one folder that goes with it.
    os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="reasoning-gym-tests-")
    os.environ["MPLCONFIGDIR"] = os.environ["TMPDIR"]  # for its cache of fonts
    tempfile.tempdir = None
    # Some tests run children as another user.
    Path(tempfile.gettempdir()).chmod(0o755)

WRITTEN_BY_RUNS = ("data", "data_dumps", "env_checkpoints", "wandb")
"""Folders of the repository that a run writes to and no test may."""


def written_by_runs():
    return {p for name in WRITTEN_BY_RUNS for p in (REPO_ROOT / name).rglob("*")}


START_PROCESSES = {"only_api", "other_pool", "pool"}
"""Fixtures that start a process: a test that asks for one is marked."""

POOL_ITSELF = {"workers", "sandbox"}
"""Folders whose tests kill and spoil fork servers: each pool there has its own."""

WRITTEN_BEFORE = written_by_runs()
LEFT = pytest.StashKey[list[str]]()


class RootIsNoPackage:
    """Keep pytest from importing the root's `__init__.py`, and with it the host.

    That file is for Atropos. Imported before every run, it would add six seconds to
    the shortest one and make a fault in the entry fail every test.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path, parent):
        return pytest.Dir.from_parent(parent, path=path) if path == REPO_ROOT else None


def pytest_ignore_collect(collection_path, config):
    """Spare `make quick` the import of files of which it would run nothing."""
    chosen = config.getoption("markexpr").split(" and ")
    if "not processes" not in chosen or not collection_path.is_file():
        return None
    is_left_out = "\npytestmark = pytest.mark.processes\n"
    return is_left_out in collection_path.read_text(encoding="utf-8") or None


def pytest_configure(config):
    config.pluginmanager.register(RootIsNoPackage())
    gc.disable()


def pytest_collection_finish():
    """Let no later collection look at modules and items, which stay to the end."""
    gc.enable()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if START_PROCESSES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("processes")
    # What takes long comes first, so that two pytest processes end at the same time.
    slow = {item.path for item in items if item.get_closest_marker("processes")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test that is a coroutine in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


def pytest_sessionfinish(session):
    left = sorted(map(str, written_by_runs() - WRITTEN_BEFORE))
    if IS_CONTROLLER and left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        session.config.stash[LEFT] = left


def pytest_terminal_summary(terminalreporter, config):
    for path in config.stash.get(LEFT, []):
        terminalreporter.write_line(f"FAILED: the tests left {path}")


def pytest_unconfigure():
    if IS_CONTROLLER:
        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)


@pytest.fixture(scope="session")
def repo_root():
    return REPO_ROOT


@pytest.fixture(scope="session")
def fork_servers():
    """The fork servers that the pools of all tests share; started when needed."""
    servers = SharedForkServers()
    yield servers
    servers.close()


@pytest.fixture(scope="module", autouse=True)
def shared_fork_server(request, fork_servers):
    """Give every new pool workers of a fork server that is running already.

    The workers are its own, and end with it. What is shared has imported the library
    and runs no job, so that nothing of one test is left in it for the next.
    """
    if request.path.parent.name in POOL_ITSELF:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rg_env.workers.worker_pool.ForkServer", fork_servers.lend)
        yield


def new_pool(size):
    from rg_env.library import worker_jobs
    from rg_env.workers.worker_pool import WorkerPool

    return contextlib.closing(WorkerPool(size, preload=worker_jobs.PRELOAD))


@pytest.fixture(scope="session")
def pool():
    """Worker processes that hold the library, for all tests that need nothing special.

    A worker is forked when it is first needed, and replaced when a test has it killed.
    """
    with new_pool(8) as pool:
        yield pool


@pytest.fixture(scope="session")
def other_pool():
    """One worker, started apart from those of `pool`."""
    with new_pool(1) as pool:
        yield pool


def maker(pool, job):
    def make(task, params, seed):
        return pool.call(job, task, dict(params), seed, deadline_s=120.0)

    return make


@pytest.fixture(scope="session")
def make_entry(pool):
    """From a task, its parameters and a seed to the entry, made in a worker."""
    from rg_env.library import worker_jobs

    return maker(pool, worker_jobs.make_entry)


@pytest.fixture(scope="session")
def make_asked_entry(pool):
    """As `make_entry`, with another seed where the entry of that one is not asked."""
    from jobs_for_conformance import make_asked_entry as job

    return maker(pool, job)


@pytest.fixture(scope="session")
def only_api():
    """The address of the Atropos API of this pytest process."""
    from tests.support.stock_api import running_api

    loop = asyncio.new_event_loop()
    api = running_api()
    yield loop.run_until_complete(api.__aenter__())
    loop.run_until_complete(api.__aexit__(None, None, None))
    loop.close()


@pytest.fixture
def api_url(only_api):
    """The address of a real Atropos API that knows of no trainer and of no group."""
    from tests.support.parts import empty_api

    empty_api(only_api)
    return only_api


@pytest.fixture(autouse=True)
def own_log_level():
    """Undo what an environment does to the level of our loggers.

    One that a whole module shares has done it before its first test.
    """
    logger = logging.getLogger("rg_env")
    logger.setLevel(logging.NOTSET)
    yield
    logger.setLevel(logging.NOTSET)


@pytest.fixture
def logged(caplog):
    """What our loggers say, whatever level an earlier test has left them at."""
    caplog.set_level("INFO", logger="rg_env")
    return caplog
