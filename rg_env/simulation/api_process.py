"""The real Atropos API as a child process that ends with us.

    async with running_api() as url:
        ...

The child serves what `run-api` serves, the framework's own or that of this project, but
on this machine's loopback address and on a free port.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from rg_env import ending
from rg_env.atropos import run_api as api
from rg_env.simulation.child_process import (
    announce,
    end_with_parent,
    running_program,
)
from rg_env.simulation.group_counter import GroupCounter


@contextlib.asynccontextmanager
async def running_api(
    port: int = 0,
    *,
    log_path: Path | None = None,
    is_counted: bool = False,
    is_quick: bool = False,
) -> AsyncIterator[str]:
    """Run the Atropos API while the context lasts.

    Args:
        port: Port on the loopback address; 0 for a free one.
        log_path: File for what the API prints, overwritten; None for one without a
            name.
        is_counted: Whether `rg_env.simulation.group_counter` stands in front of it.
        is_quick: Whether it is this project's `run-api`, not the framework's.

    Yields:
        The base URL, without a slash at its end.

    Raises:
        ChildError: It ended or did not answer in time.
    """
    argv = [f"--port={port}"]
    argv += ["--counted"] * is_counted + ["--quick"] * is_quick
    module = "rg_env.simulation.api_process"
    async with running_program(module, *argv, log_path=log_path) as url:
        yield url


def listen(port: int) -> socket.socket:
    """Listen on a port of the loopback address.

    Raises:
        SystemExit: It is in use.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError as error:
        raise SystemExit(
            f"cannot listen on 127.0.0.1:{port} for the Atropos API ({error});"
            " stop what uses the port, or choose another one"
        ) from error
    return listener


def main() -> int:
    """Serve until the standard input closes."""
    parser = argparse.ArgumentParser(prog="python -m rg_env.simulation.api_process")
    parser.add_argument("--port", type=int, default=0, help="0 for a free one")
    parser.add_argument(
        "--counted", action="store_true", help="count the groups that it takes"
    )
    parser.add_argument("--quick", action="store_true", help="this project's run-api")
    options = parser.parse_args()
    end_with_parent()
    listener = listen(options.port)
    served = api.application(is_quick=options.quick)
    if options.counted:
        served = GroupCounter(served)
    announce(f"http://127.0.0.1:{listener.getsockname()[1]}")
    ending.run(api.serve(served, listener))
    return 0


if __name__ == "__main__":
    sys.exit(main())
