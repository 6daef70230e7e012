"""`score-server`: items and scores over HTTP, for remote or non-Python trainers.

It needs uvicorn (`pip install '.[server]'`) and nothing of the framework; without the
framework it is started as `reasoning-gym-environment score-server`.
"""

from __future__ import annotations

import ipaddress
import sys
from typing import Any

import click

from rg_env import patience
from rg_env.cli import listening
from rg_env.cli.command import Command, flag
from rg_env.cli.main import main
from rg_env.cli.setting_options import OF_STREAM, BareOptions, stream_of
from rg_env.errors import SettingError
from rg_env.items.tasks import Tasks

WAITING_CONNECTIONS = 1024
OPTIONS = BareOptions(OF_STREAM, seed=0)


def _application(stream: Tasks, *, openenv: bool, **options: Any) -> Any:
    """Return what is served; raises `SettingError` where a package is missing."""
    try:
        import uvicorn  # noqa: F401 - the server itself

        from rg_env.adapters.http import ScoreServer

        if not openenv:
            return ScoreServer(stream, **options)
        from rg_env.adapters.openenv import application

        return ScoreServer(stream, others=application(stream), **options)
    except ImportError as error:
        extra = "openenv" if openenv else "server"
        raise SettingError(
            f"score-server needs the package {error.name}; `pip install"
            f" 'reasoning-gym-environment[{extra}]'` installs it"
        ) from error


@click.command(
    "score-server", cls=Command, example="score-server --tasks gcd,*_sorting"
)
@listening.HOST
@listening.port_option(8010)
@flag("--gold", text="Include the reference answers of items")
@flag(
    "--mask_sample",
    text="If there is no score, answer /verify with mask_sample instead of status 503;"
    " needs NeMo Gym 0.7 or newer",
)
@flag("--openenv", text="Also serve the protocol of OpenEnv, at /ws")
@listening.SECRET_FILE
@listening.ALLOWED_HOSTS
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
    stream = stream_of(OPTIONS.read(given))
    with listening.listen(host, port, WAITING_CONNECTIONS) as listener:
        names = [host, *(allowed_hosts or ())]
        host, port = listener.getsockname()[:2]
        if secret_file is None and not ipaddress.ip_address(host).is_loopback:
            raise SettingError(
                f"--host {host}: other machines would reach this server, so"
                " --secret_file must name a file with a secret;"
                f" {listening.advice('FILE')}"
            )
        how = {"shows_gold": gold, "masks": mask_sample, "openenv": openenv}
        served = listening.checked(_application(stream, **how), secret_file, names)
        stream.categories()  # names a task that does not exist

        ready = f"score server ready on {listening.url_of(host, port)}"
        who = listening.who_reaches(host, port, secret_file)
        # The rest is for closing: after END_WITHIN_S the process is killed.
        end_within_s = int(patience.END_WITHIN_S - 2)
        # What a client sends is no news.
        options = {"end_within_s": end_within_s, "log_level": "error", "ws": "auto"}
        listening.serve(served, listener, ready, who, **options)
    return 0


score_server.params += OPTIONS.options

if __name__ == "__main__":
    sys.exit(main(None, ["score-server", *sys.argv[1:]]))
