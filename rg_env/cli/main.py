"""The command line: which command, and what its end is called.

Exit status 0 is success, 1 a failure at run time, 2 a setting that stopped the start
(one sentence on standard error), 128 + n the end by signal n.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from rg_env import ending
from rg_env.cli import failures
from rg_env.cli.printing import flush_or_forget
from rg_env.errors import SettingError, unknown_name

COMMANDS = {
    "serve": (
        "rg_env.cli.atropos_commands",
        "serve",
        "feed a trainer through the Atropos API",
    ),
    "process": (
        "rg_env.cli.atropos_commands",
        "process",
        "write groups as JSONL and an HTML page",
    ),
    "evaluate": (
        "rg_env.cli.atropos_commands",
        "evaluate",
        "measure a model on fixed items",
    ),
    "run-api": (
        "rg_env.cli.run_api_command",
        "run_api",
        "the Atropos API, between environments and trainer",
    ),
    "simulated-server": (
        "rg_env.cli.simulated_server_command",
        "simulated_server",
        "an inference server with a simulated model",
    ),
    "tasks": (
        "rg_env.cli.tasks_command",
        "tasks",
        "list the tasks, their scales and costs",
    ),
    "show": (
        "rg_env.cli.show_command",
        "show",
        "print an item, and score an answer to it",
    ),
    "doctor": (
        "rg_env.cli.doctor_command",
        "doctor",
        "check this installation, task by task",
    ),
    "demo": (
        "rg_env.cli.demo_command",
        "demo",
        "run it all on this machine, simulated model",
    ),
}
"""Command to module, function and what it does."""

MAKE_ITEMS = frozenset({"serve", "process", "evaluate"})
"""Commands whose process makes items."""

NEED_ENVIRONMENT = MAKE_ITEMS | {"demo"}
"""Commands that use the environment's class, and with it the framework."""

USAGE = """\
usage: python reasoning_gym_environment.py [COMMAND] [OPTIONS]

{commands}

Without a command it is `serve`. `COMMAND --help` lists the options."""


def usage() -> str:
    """Return the general help."""
    lines = [f"  {name:<17} {row[2]}" for name, row in COMMANDS.items()]
    return USAGE.format(commands="\n".join(lines))


def _command(argv: Sequence[str]) -> tuple[str, list[str]]:
    if not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help")):
        return "serve", list(argv)
    if argv[0] == "help" and len(argv) == 2:
        return argv[1], ["--help"]
    return argv[0], list(argv[1:])


def needs_environment(argv: Sequence[str]) -> bool:
    """Say whether a command line needs the environment's class."""
    return _command(argv)[0] in NEED_ENVIRONMENT


def glance(argv: Sequence[str]) -> int | None:
    """Look at a command line before the class it needs is imported, which takes long.

    Returns:
        The exit status, if the command line is refused; else None.

    Raises:
        SystemExit: It asked for help, which is printed.
    """
    command, rest = _command(argv)
    try:
        if command == "demo":
            from rg_env.cli import demo_options

            demo_options.parse(rest)
            print("Importing Atropos, which takes some seconds ...", flush=True)
        elif command in MAKE_ITEMS:
            from rg_env.cli import atropos_options

            atropos_options.glance(command, rest)
    except SettingError as error:
        return failures.end(error)
    return None


def begin_workers(argv: Sequence[str]) -> None:
    """Have the library loaded for the workers of a command while ours are imported."""
    command, _ = _command(argv)
    if command in MAKE_ITEMS:
        from rg_env.items import worker_jobs
        from rg_env.pool import early_start
        from rg_env.pool.worker_pool import DEFAULT_MEMORY_LIMIT_BYTES

        early_start.begin(worker_jobs.PRELOAD, DEFAULT_MEMORY_LIMIT_BYTES)


def run_and_exit(env_cls: Any, argv: Sequence[str]) -> NoReturn:
    """Run a command line as all that this process does.

    Raises:
        SystemExit: With the exit status, always.
    """
    ending.stop_at_interrupt()
    try:
        status = main(env_cls, argv)
    finally:
        flush_or_forget()
    raise SystemExit(status)


def main(env_cls: Any, argv: Sequence[str]) -> int:
    """Run a command line.

    Args:
        env_cls: The environment's class.
        argv: Arguments without the program's name.

    Returns:
        The exit status.
    """
    name, rest = _command(argv)
    if name in ("-h", "--help", "help"):
        print(usage())
        return 0
    try:
        if name not in COMMANDS:
            raise unknown_name("command line", name, COMMANDS, "command")
        module, function, _ = COMMANDS[name]
        from rg_env import logs

        logs.start()
        run: Callable[[Any, Sequence[str]], int]
        run = getattr(importlib.import_module(module), function)
        return run(env_cls, rest)
    except ending.Stopped as end:
        return end.status
    except KeyboardInterrupt:
        return ending.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the edge, where each is a sentence
        return failures.end(error)
