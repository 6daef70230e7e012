"""The tests of the adapters, in an environment that holds the packages of the trainers.

This environment has none of these packages: their pins exclude those of the framework.
"""

import functools
import shutil
import sys

import pytest

from tests.support.commands import run_command

pytestmark = [pytest.mark.commands, pytest.mark.processes, pytest.mark.timeout(1500)]

TORCH = "torch==2.13.0"
"""The version that the example of the small model installs."""


run = functools.partial(run_command, limit_s=1200)


def environment(folder, *wanted):
    """Return the Python of a new environment that holds packages and pytest."""
    run(folder, sys.executable, "-m", "venv", "venv")
    python = folder / "venv/bin/python"
    install = (python, "-m", "pip", "install", "--quiet", "pytest", "pytest-timeout")
    run(folder, *install, *wanted)
    return python


@pytest.fixture(scope="module")
def python(tmp_path_factory, repo_root):
    folder = tmp_path_factory.mktemp("packages")
    extras = "ray,server,tinker,trl,verifiers"
    hub = repo_root / "reasoning-gym-verifiers"
    return environment(folder, f"{repo_root}[{extras}]", hub, "ray[serve]", TORCH)


NAMES = ["dataset_export", "ray", "tinker", "trl", "verifiers", "verl"]


@pytest.mark.parametrize("name", NAMES)
def test_an_adapter(python, name, repo_root, tmp_path):
    # Outside the project, so that what is installed is tested.
    for file in ("conftest", f"test_{name}"):
        shutil.copy(repo_root / f"tests/adapters/{file}.py", tmp_path)
    said = run(tmp_path, python, "-m", "pytest", "-q", "-rs", f"test_{name}.py")
    assert " passed" in said
    assert "skipped" not in said


def test_the_adapter_of_inspect(repo_root, tmp_path):
    # Its client of servers excludes that of verifiers.
    python = environment(tmp_path, f"{repo_root}[inspect]", "openai>=3.4")
    test_an_adapter(python, "inspect", repo_root, tmp_path)


def test_the_example_of_ray_serve(python, repo_root, tmp_path):
    for name in ("ray_serve", "verl_remote_reward"):
        shutil.copy(repo_root / f"examples/{name}.py", tmp_path)
    test_an_adapter(python, "ray_serve", repo_root, tmp_path)


def test_the_example_of_trl(python, repo_root, tmp_path):
    torchrun = (python.with_name("torchrun"), "--nproc_per_node", 2)
    example = (*torchrun, repo_root / "examples/trl/train.py", "--work", "work")
    short = ("--conversations", 400, "--sft_steps", 1, "--steps", 1)
    assert "mean reward" in run(tmp_path, *example, *short)
