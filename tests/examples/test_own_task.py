"""The tasks of the examples pass their own tests."""

import subprocess
import sys

import pytest

from tests.support.documents import ROOT


@pytest.mark.processes
def test_the_tests_of_the_examples_pass():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "examples/own_task"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120.0,
    )
    assert done.returncode == 0, done.stdout
    assert " 2 passed" in done.stdout
