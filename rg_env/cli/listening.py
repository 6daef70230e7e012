"""Where a command listens: its options, and an address that cannot be listened on."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import click

from rg_env.errors import SettingError, shown


def host_option(default: str) -> Callable[[Any], Any]:
    """Return the option of the address."""
    text = "Address to listen on; 127.0.0.1 for this machine alone"
    return click.option("--host", default=default, show_default=True, help=text)


def port_option(default: int) -> Callable[[Any], Any]:
    """Return the option of the port."""
    return click.option(
        "--port",
        type=click.IntRange(0, 65_535),
        default=default,
        show_default=True,
        help="0 picks a free one",
    )


def url_of(host: str, port: int) -> str:
    """Return the address as clients write it."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen(host: str, port: int, backlog: int = 1) -> socket.socket:
    """Return a socket that listens.

    Raises:
        SettingError: Nothing can listen there, and why.
    """
    try:
        found = socket.getaddrinfo(host.strip() or "?", port, type=socket.SOCK_STREAM)
        return socket.create_server((host, port), family=found[0][0], backlog=backlog)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SettingError(
            f"--host {shown(host)}, --port {port}: nothing can listen there ({reason});"
            " take an address of this machine and a port above 1023, or 0"
        ) from error
