"""`score-server`: items and scores over HTTP, for remote or non-Python trainers.

It needs uvicorn (`pip install '.[server]'`) and nothing of the framework; without the
framework it is started as `reasoning-gym-environment score-server`.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
from typing import Any

import click

from rg_env import ending, patience
from rg_env.cli.command import (
    Command,
    advice,
    allowed_hosts_option,
    checked,
    host_option,
    listen,
    port_option,
    secret_option,
    url_of,
    who_reaches,
)
from rg_env.cli.main import main
from rg_env.cli.setting_options import OF_STREAM, bare_options, read_bare, stream_of
from rg_env.errors import SettingError
from rg_env.standalone.tasks import Tasks

WAITING_CONNECTIONS = 1024


def _application(stream: Tasks, *, openenv: bool, **options: Any) -> Any:
    """Return what is served; raises `SettingError` where a package is missing."""
    extra = "openenv" if openenv else "server"
    try:
        import uvicorn  # noqa: F401 - the server itself

        from rg_env.adapters.http import ScoreServer

        if not openenv:
            return ScoreServer(stream, **options)
        from rg_env.adapters.openenv import application

        return ScoreServer(stream, others=application(stream), **options)
    except ImportError as error:
        raise SettingError(
            f"score-server needs the package {error.name}; `pip install"
            f" 'reasoning-gym-environment[{extra}]'` installs it"
        ) from error


async def _serve(served: Any, listener: socket.socket, said: str) -> None:
    from rg_env.serving import serve

    print(said, flush=True)
    await serve(
        served,
        listener,
        # The rest is for closing: after END_WITHIN_S the process is killed.
        end_within_s=int(patience.END_WITHIN_S - 2),
        log_level="error",  # what a client sends is no news
        ws="auto",
    )


@click.command(
    "score-server", cls=Command, example="score-server --tasks gcd,*_sorting"
)
@host_option("127.0.0.1")
@port_option(8010)
@click.option("--gold", is_flag=True, help="Include the reference answers of items")
@click.option(
    "--mask_sample",
    is_flag=True,
    help="If there is no score, answer /verify with mask_sample instead of status 503;"
    " needs NeMo Gym 0.7 or newer",
)
@click.option(
    "--openenv", is_flag=True, help="Also serve the protocol of OpenEnv, at /ws"
)
@secret_option()
@allowed_hosts_option()
def score_server(
    host: str,
    port: int,
    gold: bool,
    mask_sample: bool,
    openenv: bool,
    secret_file: str | None,
    allowed_hosts: list[str] | None,
    **given: Any,
) -> int:
    """Serve items and scores over HTTP, to any trainer and to NeMo Gym.

    The other options are settings of the environment and choose the stream of items.
    Scores are those of any item.
    """
    stream = stream_of(read_bare(OPTIONS, given, **STARTS))
    with listen(host, port, WAITING_CONNECTIONS) as listener:
        names = [host, *(allowed_hosts or ())]
        host, port = listener.getsockname()[:2]
        if secret_file is None and not ipaddress.ip_address(host).is_loopback:
            raise SettingError(
                f"--host {host}: other machines would reach this server, so"
                f" --secret_file must name a file with a secret; {advice('FILE')}"
            )
        served = _application(
            stream, openenv=openenv, shows_gold=gold, masks=mask_sample
        )
        served = checked(served, secret_file, names)
        ready = f"score server ready on {url_of(host, port)}"
        said = f"{ready}\n{who_reaches(host, port, secret_file)}"
        stream.categories()  # a name that does not exist is said now
        ending.run(_serve(served, listener, said))
    return 0


STARTS = {"seed": 0}
OPTIONS = bare_options(OF_STREAM, **STARTS)
score_server.params += OPTIONS

if __name__ == "__main__":
    sys.exit(main(None, ["score-server", *sys.argv[1:]]))
