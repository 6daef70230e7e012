"""The standard streams of a command: output, and an answer read from input.

A command does not fail or lose work if a stream is closed, if its reader is gone, or if
its encoding cannot represent a character.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import stat
import sys
import typing

from rg_env.errors import SettingError

if typing.TYPE_CHECKING:
    from rich.console import RenderableType

STDIN, STDOUT = 0, 1
MAX_INPUT_BYTES = 16 * 2**20
PIPE_PATIENCE_S = 1.0
"""How long a pipe may stay silent that nobody wanted to be read."""


def _lead_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


class _Forgetful(io.FileIO):
    """Standard output that goes nowhere once its reader has had enough (`| head`)."""

    def write(self, data, /):  # type: ignore[no-untyped-def]
        try:
            return super().write(data)
        except BrokenPipeError:
            _lead_nowhere(self.fileno())
            return len(data)


def prepare() -> None:
    """Redirect streams that are closed (`>&-`) to /dev/null, and ignore lost readers.

    Otherwise the next file that is opened would get the number of the stream, and with
    it the output of child processes.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            os.set_inheritable(nowhere, True)
            setattr(sys, name, os.fdopen(nowhere, mode))
    old = sys.__stdout__
    if isinstance(old, io.TextIOWrapper) and sys.stdout is old:
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Forgetful(STDOUT, "w", closefd=False)),
            encoding=old.encoding,
            errors="backslashreplace",  # no encoding ends a command
            line_buffering=old.line_buffering,
            write_through=old.write_through,
        )


# -- printing --------------------------------------------------------------------------


def print_text(text: str) -> None:
    """Print a text; a reader that has gone, as `head` does, has had enough."""
    encoding = sys.stdout.encoding or "utf-8"
    printable = text.encode(encoding, "backslashreplace").decode(encoding)
    with contextlib.suppress(BrokenPipeError):
        print(printable)
    flush_or_forget()


def flush_or_forget() -> None:
    """Print what is still to be printed; forget it if its reader has gone."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python writes what is left once more at its end, and would complain.
        _lead_nowhere(sys.stdout.fileno())


def rendered(*parts: RenderableType, width: int | None = None) -> str:
    """Return what a terminal is sent for tables and texts, at most so wide."""
    from rich.console import Console  # 0.1 s, which most commands do without

    from rg_env.reports.fitting_table import width_of

    terminal = Console()
    widest = width_of(terminal)
    encoding = sys.stdout.encoding or "utf-8"  # says which lines can be drawn
    raw = io.BytesIO()
    target = io.TextIOWrapper(raw, encoding, "backslashreplace", write_through=True)
    console = Console(
        file=target,
        width=min(width or widest, widest),
        force_terminal=terminal.is_terminal,
        color_system="standard" if terminal.color_system else None,
        highlight=False,
    )
    for part in parts:
        console.print(part)
    lines = raw.getvalue().decode(encoding).splitlines()
    return "\n".join(line.rstrip() for line in lines)


# -- an answer: in a command's words, through a pipe or typed --------------------------


def _read_input() -> str:
    """Read standard input to its end, if it is open and no longer than any answer."""
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
    """Return what a pipe or a file brings unwanted, None if nothing.

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
    """Return the text of `--answer` and where it is from, None where none was given.

    Raises:
        SettingError: Standard input is wanted and cannot be read.
    """
    if option is None:
        text = _piped_text()
        return None if text is None else (text, "standard input")
    if option != "-":
        # Python has put surrogates where an argument is no UTF-8.
        return os.fsencode(option).decode("utf-8", "replace"), "the command line"
    if sys.stdin is not None and os.isatty(STDIN):
        print("Type the answer, then Ctrl-D on a line of its own.", file=sys.stderr)
    return _read_input(), "standard input"
