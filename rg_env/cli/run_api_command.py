"""`run-api`: the framework's own API, which the trainer and `serve` meet at.

The same application as the framework's command of this name, which may be used as well;
see rg_env.atropos.run_api for what makes this one quicker.
"""

from __future__ import annotations

import socket

import click

from rg_env import ending
from rg_env.atropos import run_api as api
from rg_env.cli.command import Command, host_option, listen, port_option, url_of

WAITING_CONNECTIONS = 2048
"""As many as the framework's command lets wait."""


async def _serve(listener: socket.socket) -> None:
    served = api.application()
    print(f"Atropos API ready on {url_of(*listener.getsockname()[:2])}", flush=True)
    await api.serve(served, listener)


@click.command("run-api", cls=Command, example="run-api --port 8000")
@host_option("0.0.0.0")  # noqa: S104 - as the framework's own command
@port_option(8000)
def run_api(host: str, port: int) -> int:
    """Serve the Atropos API: the framework's own, with its replies encoded quickly."""
    with listen(host, port, WAITING_CONNECTIONS) as listener:
        ending.run(_serve(listener))
    return 0
