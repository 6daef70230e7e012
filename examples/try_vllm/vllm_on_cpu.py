"""A stock vLLM on a machine without a GPU: its environment, its start and its end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
import venv
from importlib import metadata
from pathlib import Path

from rg_env.errors import RunError
from rg_env.workers.sandbox import syscalls

VENV = Path(__file__).resolve().parents[2] / ".venv-vllm"
VLLM = Path(__file__).with_name("requirements.txt")
"""What is installed, as pip reads it. PyTorch without CUDA, which it asks for, is on an
index of PyTorch's own; pip knows it by `PIP_EXTRA_INDEX_URL` or its settings."""

NOT_OF_CPU = ("torchvision", "torchaudio", "torchcodec")
"""What is resolved beside vLLM and does not fit torch's build for CPUs."""

START_WITHIN_S = 600
LOOK_EVERY_S = 1.0
SMALL = {
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "HF_HUB_OFFLINE": "1",
}
"""Variables with which vLLM takes little of a small machine."""


class VllmError(RunError):
    """vLLM could not be installed, or does not run."""


def make_python() -> Path:
    """Make an environment with vLLM, unless it is there.

    Returns:
        Its Python.

    Raises:
        VllmError: pip failed, which has said why.
    """
    python, note = VENV / "bin" / "python", VENV / ".made"
    wanted = VLLM.read_text(encoding="utf-8")
    if note.is_file() and note.read_text(encoding="utf-8") == wanted:
        return python
    print(f"making {VENV} (3.5 GB, about ten minutes)", flush=True)
    # Or mend one that was not finished. In this process, which Ctrl-C ends quietly.
    venv.create(VENV, with_pip=True, symlinks=True)
    pip = (python, "-m", "pip", "--quiet")
    _run(*pip, "install", "--no-compile", "-r", VLLM)  # most of it is never imported
    _run(*pip, "uninstall", "--yes", *NOT_OF_CPU)
    _name_it_vllm(VENV)
    note.write_text(wanted, encoding="utf-8")
    return python


def _run(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], check=False)
    if done.returncode:
        words = " ".join(map(str, command[:5]))
        raise VllmError(f"failed with status {done.returncode}: {words}")


def _name_it_vllm(folder: Path) -> None:
    """Give vLLM the metadata that it asks for: its name, with cpu in the version."""
    (site,) = folder.glob("lib/python3*/site-packages")
    if any(site.glob("vllm-*.dist-info")):
        return
    (theirs,) = site.glob("vllm_cpu-*.dist-info")
    version = metadata.Distribution.at(theirs).version
    ours = site / f"vllm-{version}+cpu.dist-info"
    shutil.copytree(theirs, ours)
    text = (ours / "METADATA").read_text(encoding="utf-8")
    for before, after in (
        ("Name: vllm-cpu", "Name: vllm"),
        (f"Version: {version}", f"Version: {version}+cpu"),
    ):
        text = text.replace(before, after, 1)
    (ours / "METADATA").write_text(text, encoding="utf-8")


def free_port() -> int:
    """Return a port that nobody uses just now."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def is_well(url: str) -> bool:
    """Say whether an inference server answers.

    Args:
        url: Its root.
    """
    try:
        with urllib.request.urlopen(  # noqa: S310 - of HTTP, as the caller made it
            f"{url}/health", timeout=5
        ) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


class Vllm:
    """A stock `vllm serve` of a small machine, at one address for all its starts.

    Args:
        python: Of the environment that has it.
        model: The model's folder.
        name: The model's name in requests.
        log: What it says is appended to this file.

    Attributes:
        url: Its root, without a slash at its end.
    """

    def __init__(self, python: Path, model: Path, name: str, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._command = [
            *(str(python.with_name("vllm")), "serve", str(model)),
            *("--host", "127.0.0.1", "--port", str(port)),
            *("--served-model-name", name, "--max-model-len", "4096"),
            *("--enforce-eager", "--dtype", "float32"),
        ]

    def start(self) -> None:
        """Begin to start it."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **SMALL},
                # Ctrl-C at the terminal is for us; it is killed with what it started.
                start_new_session=True,
                # And if we are killed it is told by the kernel.
                preexec_fn=syscalls.end_with_parent,
            )

    def ready(self) -> None:
        """Wait until it answers, which takes 20 to 60 s.

        Raises:
            VllmError: It ended, or does not answer.
        """
        deadline = time.monotonic() + START_WITHIN_S
        while not is_well(self.url):
            self.check()
            if time.monotonic() > deadline:
                raise VllmError(f"vLLM does not answer; see {self._log}")
            time.sleep(LOOK_EVERY_S)

    def check(self) -> None:
        """Raise `VllmError` if it has ended."""
        if self._process is None or self._process.poll() is not None:
            raise VllmError(f"vLLM has ended; see {self._log}")

    def kill(self) -> None:
        """Kill it and what it has started, at once."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
