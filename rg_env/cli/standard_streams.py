"""The standard streams of a command: output, and an answer read from input."""

from __future__ import annotations

import os
import sys
import typing

if typing.TYPE_CHECKING:
    from rich.console import RenderableType


def print_text(text: str) -> None:
    """Print a text at once."""
    print(text, flush=True)


def flush_or_forget() -> None:
    """Print what is still to be printed; forget it if its reader has gone (`| head`).

    Python would write it once more at its end, and complain.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def rendered(*parts: RenderableType, width: int | None = None) -> str:
    """Return what a terminal is sent for tables and texts, at most so wide."""
    from rich.console import Console  # 0.1 s, which most commands do without

    from rg_env.reports.fitting_table import width_of

    widest = width_of(Console())
    console = Console(width=min(width or widest, widest), highlight=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def given_answer(option: str | None) -> tuple[str, str] | None:
    """Return the text of `--answer` and where it is from, None where none was given."""
    if option is None:
        return None
    if option != "-":
        return option, "the command line"
    if sys.stdin.isatty():
        print("Type the answer, then Ctrl-D on a line of its own.", file=sys.stderr)
    return sys.stdin.read(), "standard input"
