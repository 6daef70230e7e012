"""Commands as a user runs them, without anything that this pytest has set."""

import contextlib
import os
import signal
import subprocess


def run_command(folder, *command, limit_s):
    """Run a command in a folder; return what it says. It has to end with status 0."""
    inherited = {n: v for n, v in os.environ.items() if not n.startswith("PYTEST_")}
    inherited.pop("PYTHONPATH", None)
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=folder,
        env=inherited,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=limit_s)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with what it has started
        process.wait()
    assert process.returncode == 0, f"{command}: {text}"
    return text


def read_log_end(log):
    """Return the last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])
