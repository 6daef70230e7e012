"""Where a command listens, and who may use what it serves: options and checks."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from rg_env import ending
from rg_env.cli.command import Names, option
from rg_env.errors import SettingError, shown

SECRET_FORM = re.compile(r"[\w.~-]{16,256}", re.ASCII)
"""What stands in a path as it is, and nobody guesses."""

HOST = click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; 127.0.0.1 accepts only this machine, 0.0.0.0 any",
)
SECRET_FILE = click.option(
    "--secret_file",
    type=click.Path(),
    help="File with a secret that clients must put into the URL,"
    " http://HOST:PORT/SECRET, or send as a bearer token",
)
ALLOWED_HOSTS = click.option(
    "--allowed_hosts",
    type=Names(),
    help="Names, beside those of this machine, by which clients reach this server,"
    " such as the name of a service",
)


def port_option(default: int) -> Callable[[Any], Any]:
    """Return the option of the port."""
    text = "Port to listen on; 0 picks a free one"
    return option("--port", click.IntRange(0, 65_535), default, text)


def url_of(host: str, port: int) -> str:
    """Return the address as clients write it."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen(host: str, port: int, backlog: int = 1) -> socket.socket:
    """Return a socket that listens.

    Raises:
        SettingError: Nothing can listen there, and why.
    """
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return socket.create_server((host, port), family=infos[0][0], backlog=backlog)
    except OSError as error:
        raise SettingError(
            f"--host {shown(host)}, --port {port}: nothing can listen there"
            f" ({error.strerror or error}); take an address of this machine and a port"
            " above 1023, or 0"
        ) from error


def advice(path: str) -> str:
    """Return how a file with a secret is made."""
    return f"write one with `(umask 077; openssl rand -hex 32 > {path})`"


def checked(served: Any, path: str | None, names: Iterable[str]) -> Any:
    """Return an application whose clients are checked; see `ClientCheck`.

    Args:
        served: The application.
        path: Of the file with the secret; None without one.
        names: Host names of the server.

    Raises:
        SettingError: There is no secret that can be used; it is not repeated.
    """
    from rg_env.serving import ClientCheck

    return ClientCheck(served, path and _secret_in(path), names)


def _secret_in(path: str) -> str:
    try:
        secret = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        raise SettingError(
            f"--secret_file {path}: cannot be read ({reason}); {advice(path)}"
        ) from error
    if not SECRET_FORM.fullmatch(secret):
        raise SettingError(
            f"--secret_file {path}: holds no secret of 16 to 256 letters, digits and"
            f" signs of -_.~; {advice(path)}"
        )
    return secret


def who_reaches(host: str, port: int, secret_file: str | None, risk: str = "") -> str:
    """Return in a sentence who can use what listens at an address.

    `risk` is what everybody can do without a secret.
    """
    is_near = ipaddress.ip_address(host).is_loopback
    who = "programs on this machine" if is_near else "all machines that reach this port"
    if secret_file is not None:
        place = f"http://HOST:{port}/SECRET"
        return f"open to {who} that know the secret of {secret_file}, at {place}"
    if is_near:
        return f"open only to {who}; --host 0.0.0.0 opens it to others"
    return f"open to {who}: {risk}; --secret_file FILE requires a secret"


def serve(served: Any, listener: socket.socket, *lines: str, **options: Any) -> None:
    """Print lines, and serve an application until a signal ends it in order."""
    from rg_env import serving

    async def run() -> None:
        print(*lines, sep="\n", flush=True)
        await serving.serve(served, listener, **options)

    ending.run(run())
