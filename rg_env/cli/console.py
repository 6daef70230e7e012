"""The console command of an installed package: the entry file, run as a program."""

from __future__ import annotations

import runpy


def main() -> None:
    """Run a command line; ends the process with its status."""
    runpy.run_module("reasoning_gym_environment", run_name="__main__", alter_sys=True)
