"""The console command of an installed package: the entry file, run as a program."""

from __future__ import annotations

import importlib.util
import runpy
import sys

from rg_env.installation import VERSION

WITHOUT_FRAMEWORK = {"score-server", "export", "rescore", "report", "compare"}
"""Commands that need only an extra: server, export, ray or report."""


def main() -> None:
    """Run a command line; ends the process with its status."""
    if sys.argv[1:] == ["--version"]:
        print("reasoning_gym_environment", VERSION)
        return
    # The entry file is for those who have installed the framework.
    is_light = sys.argv[1:2] and sys.argv[1].replace("_", "-") in WITHOUT_FRAMEWORK
    if is_light and importlib.util.find_spec("click"):
        from rg_env.cli.main import run_and_exit

        run_and_exit(None, sys.argv[1:])
    runpy.run_module("reasoning_gym_environment", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
