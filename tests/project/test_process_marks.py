"""The marker `processes` cannot lie: what starts a process without it fails."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

TESTS = """
import os, subprocess, sys
import pytest

START = [sys.executable, "-c", ""]
subprocess.run(START, check=True)


def test_unmarked_that_starts_none_after_an_import_that_has():
    pass


@pytest.fixture
def started():
    subprocess.run(START, check=True)


@pytest.mark.processes
def test_marked(started):
    subprocess.run(START, check=True)


def test_unmarked_that_starts_one():
    subprocess.run(START, check=True)


def test_unmarked_that_forks():
    if not os.fork():
        os._exit(0)
    os.wait()


def test_unmarked_whose_fixture_starts_one(started):
    pass
"""


def test_a_test_that_starts_a_process_and_is_not_marked_so_fails(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(
        "from tests.support.started_processes import StartedProcesses\n"
        "def pytest_configure(config):\n"
        "    config.addinivalue_line('markers', 'processes: starts processes')\n"
        "    config.pluginmanager.register(StartedProcesses())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", tmp_path],
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    ends = {
        line.split("::")[1].split()[0]: line.split()[0]
        for line in done.stdout.splitlines()
        if line.startswith(("PASSED ", "FAILED ", "ERROR "))
    }
    assert ends == {
        "test_marked": "PASSED",
        "test_unmarked_that_starts_one": "FAILED",
        "test_unmarked_that_forks": "FAILED",
        "test_unmarked_whose_fixture_starts_one": "ERROR",
        "test_unmarked_that_starts_none_after_an_import_that_has": "PASSED",
    }
    assert done.stdout.count("put @pytest.mark.processes before it") >= 3
