"""The console command: the command line in a process of its own."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, NoReturn

from rg_env import installation
from rg_env.cli.error_reports import install_exception_hooks


def main() -> NoReturn:
    """Run the command line, and end the process with its status.

    Importing the environment takes seconds and needs the framework, so only the
    commands that use it do. Until a command runs, Ctrl-C ends the process; an exception
    within an import would leave libraries half initialized.
    """
    install_exception_hooks()
    installation.check(installation.CORE)
    from rg_env import shutdown

    shutdown.stop_at_interrupt()
    from rg_env.cli.main import run_and_exit

    run_and_exit(env_class, sys.argv[1:])


def env_class() -> Any:
    """Import the class of environments; `__main__` may have a second copy of it."""
    return import_module("reasoning_gym_environment").ReasoningGymEnv


if __name__ == "__main__":
    main()
