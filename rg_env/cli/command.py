"""What the commands share, on top of click: help, log, types of options."""

from __future__ import annotations

import contextlib
import importlib.util
import ipaddress
import logging
import re
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rg_env import installation, logs
from rg_env.errors import SettingError, shown

if TYPE_CHECKING:
    from rg_env.adapters.ray import Cluster

START = installation.COMMAND
WORDS = f"{__name__}.words"
"""What of click's `Context.meta` holds the words behind a command, as typed."""

HELP_NAMES: dict[str, Any] = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 88,
    # Options are shown as settings are spelled, and hyphens mean the same.
    "token_normalize_func": lambda word: word.replace("-", "_"),
}

MOST_ITEMS = 10_000
"""Of a task, all made at the start."""


LATENCY_MS = click.FloatRange(0.0, 600_000.0)
"""Up to ten minutes, half of what a client waits for an answer."""


def _set_level(context: click.Context, option: click.Parameter, is_on: bool) -> None:
    if is_on:
        level = logging.DEBUG if option.name == "verbose" else logging.WARNING
        logs.set_own_level(level)


def log_options() -> list[click.Parameter]:
    """Return -v and -q, which every command has."""
    rows = {
        "verbose": "Log more, with tracebacks",
        "quiet": "Log only warnings and errors",
    }
    return [
        click.Option(
            [f"-{name[0]}", f"--{name}"],
            is_flag=True,
            expose_value=False,
            callback=_set_level,
            help=text,
        )
        for name, text in rows.items()
    ]


class Command(click.Command):
    """A command whose help begins with an example.

    Args:
        example: A command line of it, without the program.
    """

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        kwargs["context_settings"] = HELP_NAMES
        kwargs["epilog"] = f"\b\nExample:\n  {START} {example}"
        super().__init__(*args, **kwargs)
        self.params += log_options()

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_epilog(ctx, formatter)
        self.format_options(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[WORDS] = list(args)
        return super().parse_args(ctx, args)


def loaded(env_cls: Any) -> Any:
    """Return a class of environments that may have to be imported, which takes long."""
    if isinstance(env_cls, type):
        return env_cls
    progress = logging.getLogger(logs.PROGRESS_LOGGER)
    progress.info("importing Atropos, which takes some seconds")
    try:
        return env_cls()
    except Exception as error:
        said = installation.explain(error)
        if said is None:
            raise
        raise installation.InstallationError(said) from error


def option(
    name: str, kind: click.ParamType[Any], default: Any, text: str
) -> Callable[[Any], Any]:
    """Return an option that shows its default."""
    is_shown = default not in (None, "")
    return click.option(
        name, type=kind, default=default, show_default=is_shown, help=text
    )


class NamesType(click.ParamType[list[str]]):
    """Names or patterns that are separated by commas."""

    name = "names"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        names = [part.strip() for part in value.split(",")]
        if not all(names) or not value.isprintable():
            self.fail(f"{value!r} is not names separated by commas", param, ctx)
        return names


class TaskModules(NamesType):
    """Modules of a user's own tasks, as `env.task_modules` has them."""

    name = "modules"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        from rg_env.tasks.task_modules import checked

        try:
            return list(map(checked, super().convert(value, param, ctx)))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def task_modules_option() -> Callable[[Any], Any]:
    """Return the option of commands that take no settings."""
    text = "Modules of your own tasks, as env.task_modules: names, or paths of .py"
    return click.option("--task_modules", type=TaskModules(), help=text)


# -- more than one machine -------------------------------------------------------------


@contextlib.contextmanager
def cluster_at(address: str | None) -> Iterator[Cluster | None]:
    """Yield the connection to a cluster, None without an address.

    Raises:
        SettingError: Ray is not installed.
        RunError: There is no cluster.
    """
    if address is None:
        yield None
        return
    if importlib.util.find_spec("ray") is None:
        raise SettingError("--ray: ray is not installed; run `pip install ray`")
    from rg_env.adapters.ray import Cluster

    # Ray prints what became of nodes, and the result is to be read alone.
    with (
        contextlib.closing(Cluster(address)) as cluster,
        contextlib.redirect_stdout(sys.stderr),
    ):
        yield cluster


# -- where a command listens -----------------------------------------------------------


def host_option(default: str) -> Callable[[Any], Any]:
    """Return the option of the address."""
    text = "Address to listen on; 127.0.0.1 accepts only this machine, 0.0.0.0 any"
    return click.option("--host", default=default, show_default=True, help=text)


def port_option(default: int) -> Callable[[Any], Any]:
    """Return the option of the port."""
    return click.option(
        "--port",
        type=click.IntRange(0, 65_535),
        default=default,
        show_default=True,
        help="Port to listen on; 0 picks a free one",
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
        # An empty host would mean every address of this machine; "?" is none.
        found = socket.getaddrinfo(host.strip() or "?", port, type=socket.SOCK_STREAM)
        return socket.create_server((host, port), family=found[0][0], backlog=backlog)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SettingError(
            f"--host {shown(host)}, --port {port}: nothing can listen there"
            f" ({reason}); take an address of this machine and a port above 1023, or 0"
        ) from error


SECRET_FORM = re.compile(r"[\w.~-]{16,256}", re.ASCII)
"""What stands in a path as it is, and nobody guesses."""


def secret_option() -> Callable[[Any], Any]:
    """Return the option of the secret that clients send."""
    text = "File with a secret that clients must put into the URL,"
    text += " http://HOST:PORT/SECRET, or send as a bearer token"
    return click.option("--secret_file", type=click.Path(), help=text)


def advice(path: str) -> str:
    """Return how a file with a secret is made."""
    return f"write one with `(umask 077; openssl rand -hex 32 > {path})`"


def allowed_hosts_option() -> Callable[[Any], Any]:
    """Return the option of the names that clients may call the server by."""
    text = (
        "Names, beside those of this machine, by which clients reach this server, such"
    )
    text += " as the name of a service"
    return click.option("--allowed_hosts", type=NamesType(), help=text)


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
    """Return who can use what listens at an address, in a sentence.

    Args:
        host: The address.
        port: The port.
        secret_file: The option.
        risk: What everybody can do without a secret.
    """
    is_near = ipaddress.ip_address(host).is_loopback
    who = "programs on this machine" if is_near else "all machines that reach this port"
    if secret_file is not None:
        said = f"open to {who} that know the secret of {secret_file}, at"
        return f"{said} http://HOST:{port}/SECRET"
    if is_near:
        return f"open only to {who}; --host 0.0.0.0 opens it to others"
    return f"open to {who}: {risk}; --secret_file FILE requires a secret"
