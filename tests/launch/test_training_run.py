"""A whole run as a user starts it: its programs are killed, and it ends in order.

The inference server is that of the tests in the place of vLLM, and the trainer takes
batches and learns nothing. Where only an end matters, the servers run already, and
`serve` sleeps.
"""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.odd_servers import Odd, serving
from tests.support.parts import ENTRY, GUARD_S, TOKENIZER, run_main
from tests.support.processes import descendants, left_alive

pytestmark = pytest.mark.processes

STEPS = 60
PROGRAMS = ("vllm", "serve", "trainer", "api")
VLLM = f"""#!{sys.executable}
import os, sys
assert os.environ["VLLM_SERVER_DEV_MODE"] == "1"
(port,) = [word for word in sys.argv if word.startswith("--port=")]
os.chdir({str(ENTRY.parent)!r})
argv = [sys.executable, "-m", "tests.support.inference_server", port]
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
WITHOUT_SERVE = f"""
import runpy, sys, time
if sys.argv[1] == "serve":
    time.sleep(600)
runpy.run_path({str(ENTRY)!r}, run_name="__main__")
"""


def settings_of(folder):
    """Write the settings of a run into a folder, and what it needs; return the file."""
    for name in ("bin", "policy"):
        (folder / name).mkdir()
    vllm = folder / "bin" / "vllm"
    vllm.write_text(VLLM)
    vllm.chmod(0o755)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / "trainer.py").write_text(TRAINER)
    placeholders = "{api} {group_size} {batch_size} {max_token_length} {total_steps}"
    path = folder / "launch.yaml"
    path.write_text(f"""
launch:
  folder: {folder}/run
  policy: {folder}/policy
  python: {folder}/bin/python
  trainer: {sys.executable} {folder}/trainer.py {placeholders}
env:
  tokenizer_name: {TOKENIZER}
  use_wandb: false
  tasks: [gcd, chain_sum]
  num_workers: 1
  group_size: 4
  batch_size: 8
  total_steps: {STEPS}
  max_token_length: 2048
  steps_per_eval: 0
  complexity_mode: null
  ensure_scores_are_not_same: false
""")
    return path


class Run:
    """A run that was launched; `said` is what it prints."""

    def __init__(self, folder, entry, *argv):
        self.folder = folder
        with (folder / "said").open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, str(entry), "launch", *argv],
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
        words = {"api": "run-api", "vllm": ".inference_server", "serve": "serve"}
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
        self.process.send_signal(number)
        status = self.process.wait(GUARD_S)
        return status, left_alive(started)


def test_a_run_restarts_programs_and_ends_with_its_trainer(tmp_path):
    run = Run(tmp_path, ENTRY, f"--config={settings_of(tmp_path)}")
    try:
        for name in PROGRAMS:
            seen = run.steps
            run.until(lambda seen=seen: run.steps > seen)
            run.until(lambda name=name: run.kill_program(name))
            run.until(lambda name=name: f"{name} has ended (SIGKILL" in run.said)
        assert run.end() == (0, [])
    finally:
        run.process.kill()
        run.process.wait()
    again = re.findall(r"(\w+) has ended \(SIGKILL.*; starting it again", run.said)
    assert (run.steps, again) == (STEPS, list(PROGRAMS))
    assert "Traceback" not in run.said
    assert f"{tmp_path / 'policy'}: step " in run.said
    assert "groups with variance" in run.said


@contextlib.asynccontextmanager
async def beside_servers(folder, trainer):
    """Yield an entry without `serve`, and the options of a run beside its servers."""
    entry = folder / "entry.py"
    entry.write_text(WITHOUT_SERVE)
    async with serving(Odd({}, otherwise=(200, {}))) as url:
        yield (
            entry,
            f"--config={settings_of(folder)}",
            f"--env.rollout_server_url={url}",
            f"--openai.base_url={url}/v1",
            f"--launch.trainer={trainer}",
        )


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 128 + signal.SIGINT), (signal.SIGKILL, -signal.SIGKILL)],
)
async def test_a_run_that_is_ended_leaves_no_process(tmp_path, number, status):
    async with beside_servers(tmp_path, "sleep 600") as how:
        run = Run(tmp_path, *how)
        both = lambda: len(descendants(run.process.pid)) == 2  # noqa: E731
        await asyncio.to_thread(run.until, lambda: "g trainer" in run.said and both())
        end = await asyncio.to_thread(run.end, number)
    assert end == (status, [])
    assert "Traceback" not in run.said and "retrieved" not in run.said


async def test_a_program_that_refuses_to_start_ends_the_others(
    tmp_path, monkeypatch, capsys
):
    refusing = f"""{sys.executable} -c "print('error: no such device'); exit(2)" """
    async with beside_servers(tmp_path, refusing) as (entry, *argv):
        monkeypatch.setattr(sys, "argv", [str(entry)])
        assert await asyncio.to_thread(run_main, ["launch", *argv]) == 1
    said = capsys.readouterr().err
    assert "trainer has ended (status 2: no such device)" in said
    lines = [Path(f"/proc/{pid}/cmdline") for pid in descendants(os.getpid())]
    assert not any(str(entry) in line.read_text() for line in lines)
