"""The program: the console command, and the entry file when it is run."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, NoReturn

from rg_env import installation
from rg_env.cli import failures


def main() -> NoReturn:
    """Run the command line, and end the process with its status.

    The class of environments takes seconds to import and needs the framework, so only
    the commands that use it do. Until a command runs, Ctrl-C ends the process: raised
    in an import, it would leave libraries half done.
    """
    failures.catch_the_rest()
    installation.check(installation.CORE)
    from rg_env import shutdown

    shutdown.stop_at_interrupt()
    from rg_env.cli.main import run_and_exit

    run_and_exit(env_class, sys.argv[1:])


def env_class() -> Any:
    """Return the class of environments by its name, not that of `__main__`."""
    return import_module("reasoning_gym_environment").ReasoningGymEnv


if __name__ == "__main__":
    main()
