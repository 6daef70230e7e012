"""The answer that a user gives to a command: in its words, through a pipe or typed."""

from __future__ import annotations

import os
import select
import stat
import sys

from rg_env.errors import SettingError

STDIN = 0
MAX_INPUT_BYTES = 16 * 2**20
PIPE_PATIENCE_S = 1.0
"""How long a pipe may stay silent that nobody asked to read."""


def _read_input() -> str:
    """Read standard input to its end.

    Raises:
        SettingError: It is closed, or longer than any answer.
    """
    if sys.stdin is None:
        raise SettingError("command line: --answer -: standard input is closed")
    with open(STDIN, "rb", closefd=False) as file:
        raw = file.read(MAX_INPUT_BYTES + 1)
    if len(raw) > MAX_INPUT_BYTES:
        raise SettingError(
            f"command line: standard input holds more than {MAX_INPUT_BYTES} bytes"
        )
    return raw.decode("utf-8", "replace")


def _piped_text() -> str | None:
    """Return what a pipe or a file brings that nobody asked to read, None if nothing.

    A pipe that stays silent is left alone: many programs hand their own, which never
    ends, to those that they start.
    """
    if sys.stdin is None:  # then the number may be another file's
        return None
    mode = os.fstat(STDIN).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
        return None
    if not select.select([STDIN], [], [], PIPE_PATIENCE_S)[0]:
        print(
            "standard input is silent and was not read; --answer - waits for it",
            file=sys.stderr,
        )
        return None
    return _read_input() or None


def given_answer(option: str | None) -> tuple[str, str] | None:
    """Return the answer's text and where it is from, None where none was given.

    Args:
        option: The value of `--answer`; None where it was not given.

    Raises:
        SettingError: Standard input is asked for and cannot be read.
    """
    if option is None:
        text = _piped_text()
        return None if text is None else (text, "standard input")
    if option != "-":
        return os.fsencode(option).decode("utf-8", "replace"), "the command line"
    if sys.stdin is not None and os.isatty(STDIN):
        print("Type the answer, then Ctrl-D on a line of its own.", file=sys.stderr)
    return _read_input(), "standard input"
