"""The console command of an installed package; it runs the entry file."""

from __future__ import annotations

import importlib.util
import runpy
import sys

from rg_env.installation import VERSION

WITHOUT_FRAMEWORK = {"score-server", "export", "rescore", "report", "compare"}
"""Commands that need only an extra: server, export, ray or report."""


def main() -> None:
    """Run the command line, and end the process with its status."""
    if sys.argv[1:] == ["--version"]:
        print("reasoning_gym_environment", VERSION)
        return
    # The entry file needs the framework, which these commands do not.
    is_light = sys.argv[1:2] and sys.argv[1].replace("_", "-") in WITHOUT_FRAMEWORK
    if is_light and importlib.util.find_spec("click"):
        from rg_env.cli.main import run_and_exit

        run_and_exit(None, sys.argv[1:])
    runpy.run_module("reasoning_gym_environment", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
