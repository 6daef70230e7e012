"""examples/launch.sh starts the API and the environment, and ends both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.support.parts import (
    GUARD_S,
    NOWHERE,
    TOKENIZER,
    descendants,
    free_port,
    left_alive,
)

pytestmark = pytest.mark.processes

LAUNCHER = Path(__file__).resolve().parents[2] / "examples" / "launch.sh"


def launch(folder, *argv):
    port = free_port()
    settings = {"API_PORT": str(port), "LOG_DIR": str(folder)}
    process = subprocess.Popen(
        [LAUNCHER, *argv],
        env=os.environ | settings | {"PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return process, f"http://127.0.0.1:{port}"


def is_up(url):
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


@pytest.fixture(scope="module")
def launched(tmp_path_factory):
    """Two launchers that start side by side: one that runs, and one that cannot."""
    runs = launch(
        tmp_path_factory.mktemp("runs"),
        "--env.use_wandb=false",
        f"--env.tokenizer_name={TOKENIZER}",
        "--env.tasks=gcd",
        f"--openai.base_url={NOWHERE}",
    )
    refused = launch(tmp_path_factory.mktemp("refused"), "--env.group_size=0")
    yield {"runs": runs, "refused": refused}
    for process, _ in (runs, refused):
        process.kill()
        process.wait(GUARD_S)
        process.stdout.close()


def test_the_launcher_ends_with_the_status_of_the_environment(launched):
    process, url = launched["refused"]
    said, _ = process.communicate(timeout=GUARD_S)
    assert "env.group_size" in said
    assert process.returncode == 2
    assert not is_up(url)


def test_the_launcher_ends_the_api_and_the_environment(launched):
    process, url = launched["runs"]
    said = iter(process.stdout.readline, "")
    assert any("waiting for the trainer" in line for line in said)
    assert is_up(url)
    process.send_signal(signal.SIGTERM)
    assert any("SIGTERM: ending" in line for line in said)
    process.send_signal(signal.SIGHUP)  # the second one changes nothing
    process.communicate(timeout=GUARD_S)
    assert process.returncode == 128 + signal.SIGTERM
    assert not is_up(url)


def test_a_launcher_that_is_killed_leaves_no_program(tmp_path):
    process, url = launch(tmp_path, "--env.use_wandb=false")
    while not is_up(url):
        assert process.poll() is None
    started = descendants(process.pid)
    process.kill()
    process.communicate(timeout=GUARD_S)
    assert started and left_alive(started) == []
