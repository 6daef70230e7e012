"""`run-api` and `score-server`: where they listen, and who may use what they serve."""

from __future__ import annotations

import ipaddress
import re
import socket
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from rg_env import ending
from rg_env.cli.command import Names, command, flag, option
from rg_env.cli.settings_command import (
    OF_STREAM,
    Given,
    SettingsCommand,
    settings_command,
    stream_of,
)
from rg_env.errors import SettingError, shown

WAITING_CONNECTIONS = 2048
"""As many as the framework's API lets wait."""

_SECRET_FORM = re.compile(r"[\w.~-]{16,256}", re.ASCII)
"""What stands in a path as it is, and nobody guesses."""

_ADVICE = "write one with `(umask 077; openssl rand -hex 32 > FILE)`"


def address_options(port: int) -> Callable[[Any], Any]:
    """Return the options of where a command listens."""
    text = "Address to listen on; 127.0.0.1 accepts only this machine, 0.0.0.0 any"
    host = option("--host", str, "127.0.0.1", text)
    text = "Port to listen on; 0 picks a free one"
    number = option("--port", click.IntRange(0, 65_535), port, text)
    return lambda function: host(number(function))


def _client_options(function: Any) -> Any:
    text = "File with a secret that clients must put into the URL,"
    text += " http://HOST:PORT/SECRET, or send as a bearer token"
    secret = option("--secret_file", click.Path(), None, text)
    text = "Names, beside those of this machine, by which clients reach this server,"
    text += " such as the name of a service"
    return secret(option("--allowed_hosts", Names(), None, text)(function))


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises `SettingError` if nothing can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server(
            (host, port), family=family, backlog=WAITING_CONNECTIONS
        )
    except OSError as error:
        where = f"--host {shown(host)}, --port {port}"
        raise SettingError(f"{where}: nothing can listen there ({error})") from error


def checked(served: Any, path: str | None, names: Iterable[str]) -> Any:
    """Return an application whose clients are checked; see `ClientCheck`.

    `path` is that of the file with the secret, None without one. Raises `SettingError`
    if there is no secret that can be used, without repeating it.
    """
    from rg_env.serving import ClientCheck

    if path is None:
        return ClientCheck(served, None, names)
    try:
        secret = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        raise SettingError(
            f"--secret_file {path}: cannot be read ({reason}); {_ADVICE}"
        ) from error
    if not _SECRET_FORM.fullmatch(secret):
        raise SettingError(
            f"--secret_file {path}: holds no secret of 16 to 256 letters, digits and"
            f" signs of -_.~; {_ADVICE}"
        )
    return ClientCheck(served, secret, names)


def who_reaches(host: str, secret_file: str | None, risk: str) -> str:
    """Return in a sentence who can use what listens at an address.

    `risk` is what everybody can do without a secret.
    """
    is_near = ipaddress.ip_address(host).is_loopback
    who = "programs on this machine" if is_near else "all machines that reach this port"
    if secret_file is not None:
        place = "http://HOST:PORT/SECRET"
        return f"open to {who} that know the secret of {secret_file}, at {place}"
    if is_near:
        return f"open only to {who}; --host 0.0.0.0 opens it to others"
    return f"open to {who}: {risk}; --secret_file FILE requires a secret"


def _serve(
    what: str,
    listener: socket.socket,
    served: Any,
    secret_file: str | None,
    risk: str = "",
    **options: Any,
) -> int:
    """Say what is ready, and serve it until a signal ends it in order."""
    from rg_env import serving

    host, port = listener.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host

    async def run() -> None:
        print(f"{what} ready on http://{name}:{port}")
        print(who_reaches(host, secret_file, risk), flush=True)
        await serving.serve(served, listener, **options)

    ending.run(run())
    return 0


@command("run-api --port 8000")
@address_options(8000)
@_client_options
def run_api(
    host: str, port: int, secret_file: str | None, allowed_hosts: list[str] | None
) -> int:
    """Run the Atropos API. It is the framework's own API with faster encoding."""
    from rg_env.atropos import run_api as api

    risk = "each can register, take batches and send groups that are trained on"
    with listen(host, port) as listener:
        names = [host, *(allowed_hosts or ())]
        served = checked(api.application(), secret_file, names)
        return _serve("Atropos API", listener, served, secret_file, risk)


@settings_command(
    "score-server --tasks gcd,*_sorting",
    starts=lambda name: {"seed": 0},
    fields=OF_STREAM,
    is_bare=True,
)
@address_options(8010)
@flag("--gold", text="Include the reference answers of items")
@flag(
    "--mask_sample",
    text="If there is no score, answer /verify with mask_sample instead of status 503;"
    " needs NeMo Gym 0.7 or newer",
)
@flag("--openenv", text="Also serve the protocol of OpenEnv, at /ws")
@_client_options
def score_server(
    command: SettingsCommand,
    given: Given,
    host: str,
    port: int,
    gold: bool,
    mask_sample: bool,
    openenv: bool,
    secret_file: str | None,
    allowed_hosts: list[str] | None,
) -> int:
    """Serve items and scores over HTTP, to any trainer and to NeMo Gym.

    The other options are settings of the environment and choose the stream of items.
    Scores are those of any item.
    """
    settings, _ = given.over(command.start)
    stream = stream_of(settings)
    with listen(host, port) as listener:
        bound = listener.getsockname()[0]
        if secret_file is None and not ipaddress.ip_address(bound).is_loopback:
            raise SettingError(
                f"--host {host}: other machines would reach this server, so"
                f" --secret_file must name a file with a secret; {_ADVICE}"
            )
        from rg_env.adapters.http import ScoreServer

        others = None
        if openenv:
            from rg_env.adapters.openenv import application

            others = application(stream)
        inner = ScoreServer(stream, shows_gold=gold, masks=mask_sample, others=others)
        served = checked(inner, secret_file, [host, *(allowed_hosts or ())])
        stream.categories()  # names a task that does not exist
        # The rest is for closing: after END_WITHIN_S the process is killed.
        ends = int(ending.END_WITHIN_S - 2)
        # What a client sends is no news.
        how: dict[str, Any] = {"end_within_s": ends, "log_level": "error", "ws": "auto"}
        return _serve("score server", listener, served, secret_file, **how)


if __name__ == "__main__":  # the API of the demo
    from rg_env.cli.main import main
    from rg_env.demo.child_process import end_with_parent

    end_with_parent()
    sys.exit(main(None, ["run-api", *sys.argv[1:]]))
