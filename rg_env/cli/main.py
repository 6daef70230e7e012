"""The command line: the commands, what they share, and the exit status.

The exit status is 0 for success, 1 for a failure at run time, 2 for a wrong setting
(with one sentence on standard error), and 128 + n after signal n.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from rg_env import installation, logs, shutdown
from rg_env.cli.error_reports import report_error
from rg_env.errors import SettingError

if TYPE_CHECKING:
    from rg_env.workers.worker_pool import WorkerPool

NAME = installation.PROGRAM

COMMANDS = {
    "launch": "start a whole training run",
    "serve": "feed a trainer through the Atropos API",
    "process": "write groups as JSONL and a report",
    "evaluate": "measure a model on fixed items",
    "screen": "find the tasks and levels that a model can learn from",
    "rescore": "score saved completions again",
    "compare": "show results side by side, paired by item",
    "report": "write a page about rollouts, results and metrics",
    "export": "write items or completions for other trainers",
    "run-api": "run the Atropos API for environments and a trainer",
    "score-server": "serve items and scores over HTTP, to any trainer",
    "tasks": "list the tasks with their questions, levels and costs",
    "show": "print an item, and score an answer to it",
    "doctor": "check this installation, task by task",
    "demo": "run everything on this machine with a simulated model",
}
"""Command to its description, in the order of the help."""

MODULES = {
    "run_commands": "launch serve process evaluate screen",
    "result_commands": "rescore compare report",
    "export_command": "export",
    "server_commands": "run-api score-server",
    "task_commands": "tasks show doctor",
    "demo_command": "demo",
}
"""Module to its commands."""

EXTRAS = {
    "compare": "export",
    "export": "export",
    "report": "report",
    "rescore": "ray",
    "score-server": "server",
}
"""Command to the extra of the package that it needs, if not `atropos`."""

CONTEXT_SETTINGS: dict[str, Any] = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 88,
    # Options are shown with underscores, like settings; hyphens are accepted, too.
    "token_normalize_func": lambda word: word.replace("-", "_"),
}


class Program(click.Group):
    """All commands; a command is imported when it is used, and the default is serve.

    The context's `obj` is the class of environments for commands with settings.
    """

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            raise click.exceptions.NoSuchCommand(cmd_name, None, COMMANDS, ctx)
        (name,) = (n for n, commands in MODULES.items() if cmd_name in commands.split())
        module = importlib.import_module(f"rg_env.cli.{name}")
        command = getattr(module, cmd_name.replace("-", "_"))
        return command if isinstance(command, click.Command) else command(ctx.obj)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else "-"
        if first.startswith("-") and first not in ("-h", "--help", "--version"):
            args = ["serve", *args]
        return super().parse_args(ctx, args)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


PROGRAM = Program(
    NAME,
    help="Run the tasks of reasoning-gym as an environment for Atropos.",
    epilog="Without a command, serve runs. COMMAND --help shows a command's options.",
    context_settings=CONTEXT_SETTINGS,
    subcommand_metavar="[COMMAND] [OPTIONS]",
    options_metavar="",
)
click.version_option(installation.VERSION, message="%(prog)s %(version)s")(PROGRAM)


def run_and_exit(env_cls: Any, argv: Sequence[str]) -> NoReturn:
    """Run a command line, and end the process with its status."""
    shutdown.stop_at_interrupt()
    for fd in range(3):  # a socket could get the number of a closed standard stream
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    try:
        status = main(env_cls, argv)
    finally:
        try:
            print(end="", flush=True)
        # Python would write at exit again, and print an error.
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(status)


def main(env_cls: Any, argv: Sequence[str]) -> int:
    """Run a command line without the program's name, and return the exit status.

    `env_cls` is a class of environments, or a function that imports it.
    """
    logs.start()
    try:
        with PROGRAM.make_context(NAME, list(argv), obj=env_cls) as ctx:
            return PROGRAM.invoke(ctx) or 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        return report_error(SettingError(f"command line: {error.format_message()}"))
    except Exception as error:  # noqa: BLE001 - each error becomes a sentence here
        name = argv[0] if argv else ""
        return report_error(error, EXTRAS.get(name, installation.ALL))


# -- commands --------------------------------------------------------------------------


def eager_flag(
    names: str, text: str, act: Callable[[click.Context], object]
) -> click.Option:
    """Return a flag that calls `act` when it is parsed, before all other options."""
    return click.Option(
        names.split(),
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=lambda context, _, is_on: is_on and act(context),
        help=text,
    )


class Command(click.Command):
    """A command with -v and an example (without the program) in its help."""

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        kwargs["context_settings"] = CONTEXT_SETTINGS
        kwargs["epilog"] = f"\b\nExample:\n  {installation.COMMAND} {example}"
        super().__init__(*args, **kwargs)
        text = "Log more, with tracebacks"
        self.params.append(
            eager_flag(
                "-v --verbose", text, lambda _: logs.override_level(logging.DEBUG)
            )
        )


def load_class(env_cls: Any) -> Any:
    """Return the class of environments, which `env_cls` is or imports."""
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
        return (
            self.fail("nan is not a number", *where) if math.isnan(number) else number
        )


# -- options ---------------------------------------------------------------------------


def command(example: str) -> Callable[[Callable[..., int]], Command]:
    """Return a decorator that makes a `Command` of a function."""
    return click.command(cls=Command, example=example)


def option(name: str, kind: Any, default: Any, text: str) -> Callable[[Any], Any]:
    """Return a decorator that adds an option, which shows its default if it has one."""
    has_default = default not in (None, "")
    return click.option(
        *name.split(), type=kind, default=default, show_default=has_default, help=text
    )


def flag(*names: str, text: str) -> Callable[[Any], Any]:
    """Return a decorator that adds an option without a value."""
    return click.option(*names, is_flag=True, help=text)


def _load_modules(_: object, option: object, text: str | None) -> Sequence[str]:
    from rg_env.library.own_tasks import own_modules

    return own_modules([name.strip() for name in text.split(",")] if text else ())


task_modules_option = click.option(
    "--task_modules",
    callback=_load_modules,
    metavar="NAMES",
    help="Modules of your own tasks, as env.task_modules: names, or paths of .py",
)
names_argument = click.argument("names", nargs=-1, metavar="[NAME_OR_GLOB]...")
paths_argument = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
json_option = flag("--json", "as_json", text="Print one JSON document instead")


# -- workers ---------------------------------------------------------------------------


def worker_pool(
    count: int, task_modules: Sequence[str]
) -> contextlib.closing[WorkerPool]:
    """Return worker processes that know a user's own tasks, as a context."""
    from rg_env.library import worker_jobs
    from rg_env.workers.worker_pool import WorkerPool

    preload = worker_jobs.preload_calls(task_modules)
    return contextlib.closing(WorkerPool(count, preload=preload))
