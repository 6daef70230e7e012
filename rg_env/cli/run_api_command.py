"""`run-api`: the framework's own API, which the trainer and `serve` meet at.

The same application as the framework's command of this name, which may be used as well;
see rg_env.atropos.run_api for what makes this one quicker. That command listens to
every machine; this one to its own, unless it is told otherwise.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from pathlib import Path
from typing import Any

import click

from rg_env import ending
from rg_env.atropos import run_api as api
from rg_env.cli.command import (
    Command,
    FilePathType,
    host_option,
    listen,
    port_option,
    url_of,
)
from rg_env.errors import SettingError
from rg_env.serving import serve

WAITING_CONNECTIONS = 2048
"""As many as the framework's command lets wait."""

SECRET_FORM = re.compile(r"[\w.~-]{16,256}", re.ASCII)
"""What stands in a path as it is, and nobody guesses."""


def read_secret(path: str | None) -> str | None:
    """Return the secret in a file, None without a file.

    Raises:
        SettingError: There is none that can be used; it is not repeated.
    """
    if path is None:
        return None
    advice = f"write one with `(umask 077; openssl rand -hex 32 > {path})`"
    try:
        secret = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        raise SettingError(
            f"--secret_file {path}: cannot be read ({reason}); {advice}"
        ) from error
    if not SECRET_FORM.fullmatch(secret):
        raise SettingError(
            f"--secret_file {path}: holds no secret of 16 to 256 letters, digits and"
            f" signs of -_.~; {advice}"
        )
    return secret


def who_reaches(host: str, port: int, secret_file: str | None) -> str:
    """Return who can register, take batches and send groups, in a sentence."""
    is_near = ipaddress.ip_address(host).is_loopback
    who = "programs on this machine" if is_near else "all machines that reach this port"
    if secret_file is not None:
        return (
            f"open to {who} that know the secret of {secret_file}, at"
            f" http://HOST:{port}/SECRET"
        )
    if is_near:
        return f"open only to {who}; --host 0.0.0.0 opens it to others"
    return (
        f"open to {who}: each can register, take batches and send groups that are"
        " trained on; --secret_file FILE requires a secret"
    )


async def _serve(listener: socket.socket, secret_file: str | None) -> None:
    secret = read_secret(secret_file)
    served: Any = api.application()
    if secret is not None:
        served = api.BehindSecret(served, secret)
    host, port = listener.getsockname()[:2]
    print(f"Atropos API ready on {url_of(host, port)}", flush=True)
    print(who_reaches(host, port, secret_file), flush=True)
    await serve(served, listener)


@click.command("run-api", cls=Command, example="run-api --port 8000")
@host_option("127.0.0.1")
@port_option(8000)
@click.option(
    "--secret_file",
    type=FilePathType(),
    help="File with a secret that clients must put into the URL: http://HOST:PORT/SECRET",
)
def run_api(host: str, port: int, secret_file: str | None) -> int:
    """Run the Atropos API. It is the framework's own API with faster encoding."""
    with listen(host, port, WAITING_CONNECTIONS) as listener:
        ending.run(_serve(listener, secret_file))
    return 0
