"""`score-server`: items and scores over HTTP, for remote or non-Python trainers.

It needs uvicorn (`pip install '.[server]'`) and nothing of the framework; without the
framework it is started as `reasoning-gym-environment score-server`.
"""

from __future__ import annotations

import ipaddress
import os
import re
import resource
import socket
import sys
from collections.abc import Sequence
from typing import Any

import click

from rg_env import ending, patience
from rg_env.cli.command import (
    Command,
    DifficultyType,
    NamesType,
    host_option,
    listen,
    option,
    port_option,
    task_modules_option,
    url_of,
)
from rg_env.cli.main import main
from rg_env.errors import SettingError
from rg_env.standalone.tasks import Tasks
from rg_env.tasks.sampler import MAX_SEED

WAITING_CONNECTIONS = 1024
TOKEN_FORM = re.compile(r"[\x21-\x7e]{16,256}")
"""What a header can hold, and nobody guesses."""
DEFAULT_VARIABLE = "REASONING_GYM_TOKEN"


class VariableType(click.ParamType[str]):
    """The name of an environment variable."""

    name = "variable"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the name."""
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
            self.fail(f"{value!r} is not the name of an environment variable", param)
        return str(value)


def read_token(host: str, variable: str) -> str | None:
    """Return the token in an environment variable, None where none is needed.

    Raises:
        SettingError: There is none that can be used, and one is needed; it is not
            repeated.
    """
    token = os.environ.get(variable)
    advice = f"set one with `export {variable}=$(openssl rand -hex 32)`"
    if token is not None and not TOKEN_FORM.fullmatch(token):
        raise SettingError(
            f"--token_env {variable}: the token must have 16 to 256 printable"
            f" characters without spaces; {advice}"
        )
    if token is None and variable != DEFAULT_VARIABLE:
        raise SettingError(f"--token_env {variable}: is not set; {advice}")
    if token is None and not ipaddress.ip_address(host).is_loopback:
        raise SettingError(
            f"--host {host}: other machines would reach this server, and it has no"
            f" token; {advice}"
        )
    return token


def who_reaches(host: str, variable: str, *, has_token: bool) -> str:
    """Return who gets items and scores, in a sentence."""
    is_near = ipaddress.ip_address(host).is_loopback
    who = "programs on this machine" if is_near else "all machines that reach this port"
    if has_token:
        return f"open to {who} that send the token in {variable}"
    return f"open only to {who}; --host 0.0.0.0 opens it to others, with a token"


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
    from rg_env.serving import ConnectionLimits, serve

    host, port = listener.getsockname()[:2]
    print(f"score server ready on {url_of(host, port)}", flush=True)
    print(said, flush=True)
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    await serve(
        served,
        listener,
        end_within_s=int(patience.END_WITHIN_S - 2),
        limits=ConnectionLimits(most=min(ConnectionLimits.most, files // 2)),
        log_level="error",  # what a client sends is no news
        proxy_headers=False,
        ws="auto",
    )


@click.command(
    "score-server", cls=Command, example="score-server --tasks gcd,*_sorting"
)
@host_option("127.0.0.1")
@port_option(8010)
@option("--tasks", NamesType(), None, "Tasks of the stream; by default all")
@option("--exclude_tasks", NamesType(), None, "Tasks to leave out of the stream")
@option(
    "--complexity_mode",
    DifficultyType(),
    "random",
    "Levels of the stream: None, random, curriculum, a level or a range [low, high]",
)
@option(
    "--task_choice",
    click.Choice(["weighted", "adaptive", "in_turn"]),
    "weighted",
    "How the next task is chosen",
)
@option("--seed", click.IntRange(0, MAX_SEED), 0, "Seed of the stream")
@task_modules_option()
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
@option(
    "--token_env",
    VariableType(),
    DEFAULT_VARIABLE,
    "Environment variable with the token; if it is set, clients must send the token",
)
def score_server(
    host: str,
    port: int,
    tasks: Sequence[str] | None,
    exclude_tasks: Sequence[str] | None,
    complexity_mode: Any,
    task_choice: Any,
    seed: int,
    task_modules: Sequence[str] | None,
    gold: bool,
    mask_sample: bool,
    openenv: bool,
    token_env: str,
) -> int:
    """Serve items and scores over HTTP, to any trainer and to NeMo Gym.

    The options choose the stream of items. Scores are those of any item.
    """
    stream = Tasks(
        *(tasks or ()),
        exclude=exclude_tasks or (),
        levels=complexity_mode,
        choice=task_choice,
        seed=seed,
        task_modules=task_modules or (),
    )
    with listen(host, port, WAITING_CONNECTIONS) as listener:
        address = listener.getsockname()[0]
        token = read_token(address, token_env)
        said = who_reaches(address, token_env, has_token=token is not None)
        served = _application(
            stream, openenv=openenv, token=token, shows_gold=gold, masks=mask_sample
        )
        stream.categories()  # a name that does not exist is said now
        ending.run(_serve(served, listener, said))
    return 0


if __name__ == "__main__":
    sys.exit(main(None, ["score-server", *sys.argv[1:]]))
