"""The tests of the adapters, each in an environment that holds its trainer's package.

This environment has none of these packages: their pins exclude those of the framework.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.commands,
    pytest.mark.processes,
    pytest.mark.timeout(1500),
]

TORCH = "torch==2.13.0"
"""The version that the example of the small model installs."""


def run(*argv: object, folder: Path) -> str:
    inherited = {n: v for n, v in os.environ.items() if not n.startswith("PYTEST_")}
    inherited.pop("PYTHONPATH", None)
    done = subprocess.run(
        list(map(str, argv)),
        cwd=folder,
        env=inherited,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def python_with(folder: Path, *packages: str) -> Path:
    """Return the Python of a new environment that holds some packages and pytest."""
    run(sys.executable, "-m", "venv", "venv", folder=folder)
    wanted = (*packages, "pytest", "pytest-timeout")
    python = folder / "venv/bin/python"
    run(python, "-m", "pip", "install", "--quiet", *wanted, folder=folder)
    return python


def run_tests(python: Path, source: Path, folder: Path) -> None:
    """Run a file of tests outside the project, so that what is installed is tested."""
    shutil.copy(source, folder)
    said = run(python, "-m", "pytest", "-q", "-rs", source.name, folder=folder)
    assert " passed" in said
    assert "skipped" not in said


def test_verifiers(repo_root: Path, tmp_path: Path) -> None:
    python = python_with(tmp_path, f"{repo_root}[verifiers]")
    run_tests(python, repo_root / "tests/adapters/test_verifiers.py", tmp_path)


def test_trl(repo_root: Path, tmp_path: Path) -> None:
    python = python_with(tmp_path, TORCH, f"{repo_root}[trl]")
    run_tests(python, repo_root / "tests/adapters/test_trl.py", tmp_path)
    example = (python, repo_root / "examples/trl/train.py", "--work", tmp_path / "work")
    short = ("--conversations", 400, "--sft_steps", 1, "--steps", 1)
    assert "mean reward" in run(*example, *short, folder=tmp_path)
