"""How a command ends its work: text to whoever reads it, in whatever encoding."""

from __future__ import annotations

import contextlib
import os
import sys


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
