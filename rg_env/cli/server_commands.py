"""`run-api` and `score-server`: commands that serve over HTTP, and their options."""

from __future__ import annotations

import importlib.util
import ipaddress
import logging
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rg_env import shutdown
from rg_env.cli.main import command, flag, option
from rg_env.cli.options import (
    STREAM_SETTINGS,
    ExplicitSettings,
    SettingsCommand,
    options,
    stream_of,
)
from rg_env.errors import SettingError, shown

if TYPE_CHECKING:
    from rg_env.serving import ClientCheck

logger = logging.getLogger(__name__)

BACKLOG = 2048  # as in the framework's API
_SECRET = re.compile(r"[\w.~-]{16,256}", re.ASCII)
_ADVICE = "write one with `(umask 077; openssl rand -hex 32 > FILE)`"


def server_options(port: int) -> Callable[[Any], Any]:
    """Return a decorator that adds the options of an address and its clients."""
    text = "Address to listen on; 127.0.0.1 accepts only this machine, 0.0.0.0 any"
    host_option = option("--host", str, "127.0.0.1", text)
    ports = click.IntRange(0, 65_535)
    port_option = option("--port", ports, port, "Port; 0 is a free one")
    text = (
        "File with a secret that clients must put into the URL,"
        " http://HOST:PORT/SECRET, or send as a bearer token"
    )
    secret_option = option("--secret_file", click.Path(), None, text)
    text = "Further names by which clients reach this server, separated by commas"
    hosts_option = option("--allowed_hosts", str, "", text)
    return lambda run: host_option(port_option(secret_option(hosts_option(run))))


def is_loopback(listener: socket.socket) -> bool:
    """Return whether only this machine can reach a socket."""
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        SettingError: The address is invalid or in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        where = f"--host {shown(host)}, --port {port}"
        raise SettingError(f"{where}: nothing can listen there ({error})") from error


def with_client_check(
    application: Any, host: str, secret_file: str | None, allowed_hosts: str
) -> ClientCheck:
    """Return an application that serves only clients with the secret and these hosts.

    Raises:
        SettingError: The file cannot be read, or has no secret.
    """
    from rg_env.serving import ClientCheck

    secret = None
    if secret_file is not None:
        where = f"--secret_file {secret_file}"
        try:
            secret = Path(secret_file).read_text(errors="replace").strip()
        except OSError as error:
            raise SettingError(f"{where}: {error.strerror}") from error
        if not _SECRET.fullmatch(secret):
            raise SettingError(
                f"{where}: holds no secret of 16 to 256 letters, digits and signs of"
                f" -_.~; {_ADVICE}"
            )
    hosts = [host, *allowed_hosts.replace(",", " ").split()]
    return ClientCheck(application, secret, hosts)


def _serve(name: str, listener: socket.socket, application: Any, **options: Any) -> int:
    """Print that a server is ready, and serve until a signal; return 0."""
    from rg_env import serving

    host, port = listener.getsockname()[:2]
    if ":" in host:
        host = f"[{host}]"

    async def run() -> None:
        print(f"{name} ready on http://{host}:{port}", flush=True)
        await serving.serve(application, listener, **options)

    shutdown.run(run())
    return 0


@command("run-api --port 8000")
@server_options(8000)
def run_api(host: str, port: int, **clients: Any) -> int:
    """Run the Atropos API. It is the framework's own API with faster encoding."""
    from atroposlib.api import app

    from rg_env.atropos.api_server import faster_application

    with listen(host, port) as listener:
        if clients["secret_file"] is None and not is_loopback(listener):
            logger.warning(
                "all machines that reach this port can register, take batches and send"
                " groups that are trained on; --secret_file FILE requires a secret"
            )
        application = with_client_check(faster_application(app), host, **clients)
        return _serve("Atropos API", listener, application)


@options(
    "score-server --tasks gcd,*_sorting",
    defaults=lambda name: {"seed": 0},
    fields=STREAM_SETTINGS,
    is_bare=True,
)
@server_options(8010)
@flag("--gold", text="Include the reference answers of items")
@flag("--mask_sample", text="Mask rows without a score; needs NeMo Gym 0.7 or newer")
@flag("--openenv", text="Also serve the protocol of OpenEnv, at /ws")
def score_server(
    command: SettingsCommand,
    explicit: ExplicitSettings,
    host: str,
    port: int,
    gold: bool,
    mask_sample: bool,
    openenv: bool,
    **clients: Any,
) -> int:
    """Serve items and scores over HTTP, to any trainer and to NeMo Gym.

    The other options are settings of the environment, and select the items of the
    stream. Answers to any item are scored.
    """
    if openenv and importlib.util.find_spec("openenv") is None:
        raise SettingError("--openenv: not installed; run `pip install openenv`")
    stream = stream_of(explicit.merged_with(command.defaults)[0])
    stream.categories()  # refuses the name of a task that does not exist
    with listen(host, port) as listener:
        if clients["secret_file"] is None and not is_loopback(listener):
            raise SettingError(
                f"--host {host}: other machines would reach this server, so"
                f" --secret_file must name a file with a secret; {_ADVICE}"
            )
        from rg_env.adapters.http import ScoreServer

        others = None
        if openenv:
            from rg_env.adapters.openenv import application

            others = application(stream)
        server = ScoreServer(stream, shows_gold=gold, masks=mask_sample, others=others)
        return _serve(
            "score server",
            listener,
            with_client_check(server, host, **clients),
            ws="auto",
            log_level="error",  # bad requests of clients are not logged
            # Two seconds are left to close before END_WITHIN_S kills the process.
            timeout_graceful_shutdown=int(shutdown.END_WITHIN_S - 2),
        )
