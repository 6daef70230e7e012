"""The command line: the commands and the exit status.

Exit status 0 is success, 1 a failure at run time, 2 a wrong setting (one sentence on
standard error), 128 + n the end by signal n.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from rg_env import installation, logs, shutdown
from rg_env.cli import failures
from rg_env.cli.command import HELP_NAMES

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
"""Command to its description, the most used ones first."""

_RUNS = ("launch", "serve", "process", "evaluate", "screen")
MODULES = dict.fromkeys(_RUNS, "run_commands")
MODULES |= dict.fromkeys(("compare", "report", "rescore"), "result_commands")
MODULES |= dict.fromkeys(("run-api", "score-server"), "server_commands")
MODULES |= dict.fromkeys(("tasks", "show", "doctor"), "task_commands")
"""Command to its module, if that has several."""

EXTRAS = {
    "compare": "export",
    "export": "export",
    "report": "report",
    "rescore": "ray",
    "score-server": "server",
}
"""Command to the extra of the package that it needs, if not `atropos`."""


class Program(click.Group):
    """All commands; a command is imported when it is used, and the default is serve.

    Commands with settings are made for the class in the context's `obj`.
    """

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = cmd_name.replace("_", "-")
        if cmd_name not in COMMANDS:
            raise click.exceptions.NoSuchCommand(cmd_name, None, COMMANDS, ctx)
        name = cmd_name.replace("-", "_")
        module = MODULES.get(cmd_name, f"{name}_command")
        command = getattr(importlib.import_module(f"rg_env.cli.{module}"), name)
        return command if isinstance(command, click.Command) else command(ctx.obj)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {name for option in self.get_params(ctx) for name in option.opts}
        if not args or (args[0].startswith("-") and args[0] not in own):
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
    context_settings=HELP_NAMES,
    subcommand_metavar="[COMMAND] [OPTIONS]",
    options_metavar="",
)
VERSION = "%(prog)s %(version)s"
click.version_option(installation.VERSION, message=VERSION)(PROGRAM)


def run_and_exit(env_cls: Any, argv: Sequence[str]) -> NoReturn:
    """Run a command line, and end the process with its status."""
    shutdown.stop_at_interrupt()
    for fd in range(3):  # otherwise a socket could get the number of a closed one
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    try:
        status = main(env_cls, argv)
    finally:
        try:
            print(end="", flush=True)
        except BrokenPipeError:  # Python would write it again, and print an error
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
        return failures.refuse(f"command line: {error.format_message()}")
    except Exception as error:  # noqa: BLE001 - each error becomes a sentence here
        name = argv[0].replace("_", "-") if argv else ""
        return failures.end(error, EXTRAS.get(name, installation.ALL))
