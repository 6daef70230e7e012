"""Shared parts of the commands: help, log, options, workers."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from rg_env import installation, logs

if TYPE_CHECKING:
    from rg_env.workers.worker_pool import WorkerPool

START = installation.COMMAND
HELP_NAMES: dict[str, Any] = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 88,
    # Options are shown with underscores, like settings; hyphens are accepted, too.
    "token_normalize_func": lambda word: word.replace("-", "_"),
}


def at_once(
    names: Sequence[str], text: str, act: Callable[[click.Context], object]
) -> click.Option:
    """Return a flag that calls `act` before the other options are parsed."""

    def callback(context: click.Context, option: click.Parameter, is_on: bool) -> None:
        if is_on:
            act(context)

    return click.Option(
        names,
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=callback,
        help=text,
    )


class Command(click.Command):
    """A command with -v, -q and an example (without the program) in its help."""

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        kwargs["context_settings"] = HELP_NAMES
        kwargs["epilog"] = f"\b\nExample:\n  {START} {example}"
        super().__init__(*args, **kwargs)
        for names, text, level in (
            ("-v --verbose", "Log more, with tracebacks", logging.DEBUG),
            ("-q --quiet", "Log only warnings and errors", logging.WARNING),
        ):
            act = lambda _, level=level: logs.set_own_level(level)  # noqa: E731
            self.params.append(at_once(names.split(), text, act))


def loaded(env_cls: Any) -> Any:
    """Return a class of environments; `env_cls` may be a function that imports it."""
    try:
        return env_cls if isinstance(env_cls, type) else env_cls()
    except Exception as error:
        if sentence := installation.explain(error):
            raise installation.InstallationError(sentence) from error
        raise


class Number(click.FloatRange):
    """A range of numbers without `nan`."""

    def convert(self, value: Any, *where: Any) -> float:
        """Return a text as a number."""
        number: float = super().convert(value, *where)
        return number if number == number else self.fail("nan is no number", *where)


# -- options ---------------------------------------------------------------------------


def command(example: str) -> Callable[[Callable[..., int]], Command]:
    """Return a decorator that makes a command from a function; see `Command`."""
    return click.command(cls=Command, example=example)


def option(name: str, kind: Any, default: Any, text: str) -> Callable[[Any], Any]:
    """Return an option that shows its default, if it has one."""
    is_shown = default not in (None, "")
    return click.option(
        *name.split(), type=kind, default=default, show_default=is_shown, help=text
    )


def flag(*names: str, text: str) -> Callable[[Any], Any]:
    """Return an option without a value."""
    return click.option(*names, is_flag=True, help=text)


def _modules(_: object, option: click.Parameter, text: str | None) -> list[str]:
    from rg_env.library.own_tasks import checked

    try:
        return [checked(name.strip()) for name in text.split(",")] if text else []
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


task_modules_option = click.option(
    "--task_modules",
    callback=_modules,
    metavar="NAMES",
    help="Modules of your own tasks, as env.task_modules: names, or paths of .py",
)
names_argument = click.argument("names", nargs=-1, metavar="[NAME_OR_GLOB]...")
paths_argument = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
json_option = flag("--json", "as_json", text="Print one JSON document instead")


# -- workers ---------------------------------------------------------------------------


def workers(count: int, task_modules: Sequence[str]) -> contextlib.closing[WorkerPool]:
    """Return worker processes that know a user's own tasks, as a context."""
    from rg_env.library import worker_jobs
    from rg_env.workers.worker_pool import WorkerPool

    preload = worker_jobs.preload_of(task_modules)
    return contextlib.closing(WorkerPool(count, preload=preload))
