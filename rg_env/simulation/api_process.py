"""The real Atropos API as a child process that ends with us.

    async with running_api() as url:
        ...

The child serves `atroposlib.api:app`, what `run-api` serves, but on this machine's
loopback address and on a free port. It watches its standard input: when that closes,
because we closed it or because we were killed, it ends. So no way of dying leaves an
orphan behind.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO

import aiohttp

APP = "atroposlib.api:app"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 5.0
POLL_S = 0.05
SHOWN_LOG_LINES = 20

_PROJECT = Path(__file__).resolve().parents[2]


class ApiError(RuntimeError):
    """The API did not start; the text holds the end of its log."""


@contextlib.asynccontextmanager
async def running_api(
    port: int = 0,
    *,
    log_path: Path | None = None,
    start_timeout_s: float = START_TIMEOUT_S,
) -> AsyncIterator[str]:
    """Run the Atropos API while the context lasts.

    Args:
        port: Port on the loopback address; 0 for a free one.
        log_path: File for what the API prints, overwritten; None for a temporary one
            that is removed at the end.
        start_timeout_s: How long it may take until it answers, in seconds.

    Yields:
        The base URL, without a slash at its end.

    Raises:
        ApiError: It ended or did not answer in time.
    """
    with contextlib.ExitStack() as stack:
        if log_path is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            log_path = Path(folder) / "api.log"
        log = stack.enter_context(log_path.open("wb"))
        listener = stack.enter_context(_listen(port))
        child = _start(listener, log)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        # The child has a copy; with ours open, clients would hang once it is gone.
        listener.close()
        try:
            await _wait_until_it_answers(url, child, log_path, start_timeout_s)
            yield url
        finally:
            await asyncio.shield(asyncio.to_thread(_stop, child))


def _listen(port: int) -> socket.socket:
    """Listen before the child exists, so that nobody can take the port in between."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ApiError(
            f"cannot listen on 127.0.0.1:{port} for the Atropos API ({error});"
            " stop what uses the port, or choose another one"
        ) from error
    return listener


def _start(listener: socket.socket, log: IO[bytes]) -> "subprocess.Popen[bytes]":
    descriptor = str(listener.fileno())
    paths = [str(_PROJECT), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "rg_env.simulation.api_process",
            "--listener",
            descriptor,
        ],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        pass_fds=[listener.fileno()],
        # Ctrl-C at the terminal is for us; the child is told by us when to end.
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )


async def _wait_until_it_answers(
    url: str,
    child: "subprocess.Popen[bytes]",
    log_path: Path,
    timeout_s: float,
) -> None:
    deadline = time.monotonic() + timeout_s
    timeout = aiohttp.ClientTimeout(total=1.0)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while time.monotonic() < deadline:
            if child.poll() is not None:
                reason = f"ended with status {child.returncode} at its start"
                raise ApiError(_explain(reason, log_path))
            with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError):
                async with session.get(f"{url}/info") as response:
                    if response.status == 200:
                        return
            await asyncio.sleep(POLL_S)
    raise ApiError(_explain(f"did not answer within {timeout_s:g} s", log_path))


def _explain(reason: str, log_path: Path) -> str:
    lines = log_path.read_text("utf-8", errors="replace").splitlines()
    end = "\n".join(lines[-SHOWN_LOG_LINES:]) or "(its log is empty)"
    return f"the Atropos API {reason}; the end of its log:\n{end}"


def _stop(child: "subprocess.Popen[bytes]") -> None:
    """End the child, with force if it does not go; returns when it is gone."""
    if child.stdin:
        child.stdin.close()
    try:
        child.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _end_with_parent() -> None:
    """Wait for the end of the standard input, then end this process."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """Be the child: serve the API on an inherited listener until our input closes."""
    import uvicorn

    parser = argparse.ArgumentParser(prog="python -m rg_env.simulation.api_process")
    parser.add_argument(
        "--listener", type=int, required=True, help="file number of an open listener"
    )
    listener = socket.socket(fileno=parser.parse_args().listener)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    config = uvicorn.Config(APP, log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
