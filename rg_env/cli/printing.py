"""How a command ends its work: text to whoever reads it, in whatever encoding."""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 128 + signal.SIGINT
"""Exit status of a command that Ctrl-C ended."""


def print_text(text: str) -> None:
    """Print a text; a reader that has gone, as `head` does, has had enough."""
    encoding = sys.stdout.encoding or "utf-8"
    printable = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        print(printable, flush=True)
    except BrokenPipeError:
        # Python writes what is left once more at its end, and would complain.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
