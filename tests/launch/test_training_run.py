"""A whole run as a user starts it: its programs are killed, and it ends in order.

The inference server is that of the tests in the place of vLLM, and the trainer takes
batches and learns nothing.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.support.parts import ENTRY, GUARD_S, small_run
from tests.support.processes import descendants, left_alive

pytestmark = pytest.mark.processes

STEPS = 60
PROGRAMS = ("vllm", "serve", "trainer", "api")
VLLM = f"""#!{sys.executable}
import os, sys
assert os.environ["VLLM_SERVER_DEV_MODE"] == "1"
port = sys.argv[sys.argv.index("--port") + 1]
os.chdir({str(ENTRY.parent)!r})
argv = [sys.executable, "-m", "tests.support.inference_server", "--port", port]
os.execv(sys.executable, [*argv, "--latency_ms", "50"])
"""
TRAINER = f"""
import sys, time
sys.path.insert(0, {str(ENTRY.parent)!r})
from pathlib import Path
from types import SimpleNamespace
from examples.trainer.batches import BatchShape, BatchSource
group_size, batch_size, longest, steps = map(int, sys.argv[2:6])
groups = batch_size // group_size
source = BatchSource(
    sys.argv[1],
    BatchShape(group_size=group_size, groups=groups, max_token_len=longest),
)
done = Path(sys.argv[0]).with_name("done")
for step in range(len(done.read_text()) if done.exists() else 0, steps):
    assert len(source.next_batch(step)) == groups
    with done.open("a") as file:
        file.write(".")
    time.sleep(0.2)
"""


def settings_of(folder, **launch):
    """Write the settings of a run into a folder, and what it needs; return the file."""
    (folder / "bin").mkdir()
    python, vllm = folder / "bin" / "python", folder / "bin" / "vllm"
    python.symlink_to(sys.executable)
    vllm.write_text(VLLM)
    vllm.chmod(0o755)
    program = folder / "trainer.py"
    program.write_text(TRAINER)
    (folder / "policy").mkdir()
    places = "{api} {group_size} {batch_size} {max_token_length} {total_steps}"
    settings = {
        "launch": {
            "folder": str(folder / "run"),
            "policy": str(folder / "policy"),
            "python": str(python),
            "trainer": f"{sys.executable} {program} {places}",
            **launch,
        },
        "env": {
            **small_run(),
            "tasks": ["gcd", "chain_sum"],
            "batch_size": 8,
            "total_steps": STEPS,
            "complexity_mode": None,
            "ensure_scores_are_not_same": False,
            "data_dumps_dir": str(folder / "run" / "data_dumps"),
        },
    }
    path = folder / "launch.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


class Run:
    """A run that was launched; `said` is what it prints."""

    def __init__(self, folder, **settings):
        self.folder = folder
        config = settings_of(folder, **settings)
        with (folder / "said").open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, str(ENTRY), "launch", "--config", str(config)],
                stdout=said,
                stderr=said,
                cwd=folder,
            )

    @property
    def said(self):
        return (self.folder / "said").read_text()

    @property
    def steps(self):
        done = self.folder / "done"
        return len(done.read_text()) if done.exists() else 0

    def until(self, wanted):
        deadline = time.monotonic() + GUARD_S
        while not wanted():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.1)

    def kill_program(self, name):
        """Kill a program; return whether it was there."""
        words = {
            "api": "run-api",
            "vllm": ".inference_server",
            "serve": "serve",
        }
        word = words.get(name, "trainer.py")
        for child in descendants(self.process.pid):
            with contextlib.suppress(FileNotFoundError):  # it has just ended
                argv = Path(f"/proc/{child}/cmdline").read_text().split("\0")
                if any(part.endswith(word) for part in argv[:3]):
                    os.kill(child, signal.SIGKILL)
                    return True
        return False

    def end(self, number=0):
        """Send a signal, wait for the end; return the status and what is left."""
        started = descendants(self.process.pid)
        assert started or not number  # one that ends by itself may have ended them
        self.process.send_signal(number)
        status = self.process.wait(GUARD_S)
        return status, left_alive(started)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs side by side, to their ends: the run, its status, what it left behind."""
    names = ("programs_killed", "interrupted", "killed", "refused")
    folders = {name: tmp_path_factory.mktemp(name) for name in names}
    refusing = f"""{sys.executable} -c "print('error: no such device'); exit(2)" """
    how = {"refused": {"trainer": refusing}}
    found = {name: Run(folder, **how.get(name, {})) for name, folder in folders.items()}
    ends = {}
    try:
        for name, number in (
            ("interrupted", signal.SIGINT),
            ("killed", signal.SIGKILL),
        ):
            found[name].until(lambda name=name: found[name].steps)
            ends[name] = (found[name], *found[name].end(number))
        run = found["programs_killed"]
        for name in PROGRAMS:
            seen = run.steps
            run.until(lambda seen=seen: run.steps > seen)
            run.until(lambda name=name: run.kill_program(name))
            run.until(lambda name=name: f"{name} has ended (SIGKILL" in run.said)
        for name in ("programs_killed", "refused"):
            ends[name] = (found[name], *found[name].end())
    finally:
        for run in found.values():
            run.process.kill()
            run.process.wait()
    return ends


def test_a_run_restarts_what_dies_and_ends_with_its_trainer_leaving_nothing(runs):
    statuses = {name: status for name, (_, status, _) in runs.items()}
    assert statuses == {
        "programs_killed": 0,
        "interrupted": 128 + signal.SIGINT,
        "killed": -signal.SIGKILL,
        "refused": 1,
    }
    assert {name: left for name, (*_, left) in runs.items()} == {
        name: [] for name in runs
    }
    said = {name: run.said for name, (run, *_) in runs.items()}
    assert not any("Traceback" in text or "retrieved" in text for text in said.values())
    assert "trainer has ended 1 time (status 2: no such device)" in said["refused"]
    run = runs["programs_killed"][0]
    again = re.findall(r"(\w+) has ended \(SIGKILL.*; starting it again", run.said)
    assert (run.steps, again) == (STEPS, list(PROGRAMS))
    assert f"{run.folder / 'policy'}: step " in run.said
    assert "groups with variance" in run.said
