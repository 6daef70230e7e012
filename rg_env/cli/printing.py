"""How a command ends its work: text to whoever reads it, in whatever encoding."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import typing

if typing.TYPE_CHECKING:
    from rich.console import RenderableType


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
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def rendered(*parts: RenderableType, width: int | None = None) -> str:
    """Return what a terminal is sent for tables and texts.

    Args:
        parts: Printed one below the other.
        width: The most columns; None for those of the terminal.
    """
    from rich.console import Console  # 0.1 s, which most commands do without

    terminal = Console()
    target = io.StringIO()
    console = Console(
        file=target,
        width=min(width or terminal.width, terminal.width),
        force_terminal=terminal.is_terminal,
        color_system="standard" if terminal.color_system else None,
        highlight=False,
    )
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in target.getvalue().splitlines())
