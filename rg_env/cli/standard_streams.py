"""The streams of a process that is a command: one is missing, or its reader has gone.

Neither is a failure of the command, and none of its work is lost by it.
"""

from __future__ import annotations

import io
import os
import sys

STDOUT = 1


class _Forgetful(io.FileIO):
    """Standard output that goes nowhere once its reader has had enough (`| head`)."""

    def write(self, data, /):  # type: ignore[no-untyped-def]
        try:
            return super().write(data)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return len(data)


def prepare() -> None:
    """Open nowhere what was closed from the start (`>&-`), and forgive lost readers.

    Else the next file that is opened gets the number of the stream, and what children
    print.
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
            errors=old.errors,
            line_buffering=old.line_buffering,
            write_through=old.write_through,
        )
