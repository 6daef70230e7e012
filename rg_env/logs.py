"""The levels and handlers of the log.

Mends B12 of docs/host_defects.md: the framework sets its loggers to DEBUG.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator

FRAMEWORK_LOGGERS = (
    "atroposlib",
    "atroposlib.envs.base",
    "atroposlib.envs.server_handling",
)
"""The framework sets some of these to DEBUG on import, so each is set by name."""

OWN_LOGGER = "rg_env"
PROGRESS_LOGGER = "rg_env.reports.progress_bar"
"""Of the lines of work in progress, which every command shows."""

LINE_FORMAT = "%(asctime)s %(levelname)-7s %(part)s%(message)s"
TIME_FORMAT = "%H:%M:%S"


class _LineFormatter(logging.Formatter):
    """Names loggers that are not ours; of ours, the last part, for DEBUG lines only."""

    def __init__(self) -> None:
        super().__init__(LINE_FORMAT, TIME_FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        is_ours = record.name.startswith(f"{OWN_LOGGER}.")
        part = record.name.rpartition(".")[2] if is_ours else record.name
        is_shown = not is_ours or record.levelno <= logging.DEBUG
        record.part = f"{part}: " if is_shown else ""
        return super().formatMessage(record)


class _Unconfigured(logging.Handler):
    """Writes to standard error as long as the program has not set up logging.

    A program that builds the environment from Python often has not, and would see
    warnings alone whatever `debug_logging` says. Once it has, the lines are its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(_LineFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        own, root = logging.getLogger(OWN_LOGGER), logging.getLogger()
        if {*own.handlers, *root.handlers} - {self}:
            return
        try:
            sys.stderr.write(f"{self.format(record)}\n")
        except (AttributeError, OSError, ValueError):  # there is none, or it is closed
            self.handleError(record)


_own_level: int | None = None


def set_own_level(level: int | None) -> None:
    """Set the level of our log, whatever the settings say; None leaves it to them."""
    global _own_level
    _own_level = level
    if level is not None:
        for name in (OWN_LOGGER, PROGRESS_LOGGER):
            logging.getLogger(name).setLevel(level)


def set_levels(debug: bool, quiet_framework: bool) -> None:
    """Set the levels of our loggers and the framework's, and have ours seen."""
    own = logging.getLogger(OWN_LOGGER)
    own.setLevel(_own_level or (logging.DEBUG if debug else logging.INFO))
    if not any(isinstance(handler, _Unconfigured) for handler in own.handlers):
        own.addHandler(_Unconfigured())
    for name in FRAMEWORK_LOGGERS:
        logging.getLogger(name).setLevel(
            logging.WARNING if quiet_framework else logging.DEBUG
        )


def start() -> None:
    """Write the log to standard error, for a program of ours."""
    handler = logging.StreamHandler()
    handler.setFormatter(_LineFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    set_own_level(None)
    logging.getLogger(PROGRESS_LOGGER).setLevel(logging.INFO)


@contextlib.contextmanager
def above_live_view() -> Iterator[None]:
    """Let lines appear above a live view of rich instead of being overwritten by it.

    For the time in which rich has put a stream of its own in the place of
    `sys.stderr`; where the log is no terminal's, it stays where it is.
    """
    terminal = sys.__stderr__
    moved = [
        handler
        for handler in logging.getLogger().handlers
        if isinstance(handler, logging.StreamHandler)
        and terminal is not None
        and handler.stream is terminal
        and terminal.isatty()
    ]
    for handler in moved:
        handler.setStream(sys.stderr)
    try:
        yield
    finally:
        for handler in moved:
            handler.setStream(terminal)


def is_worth_a_line(count: int, new: int = 1) -> bool:
    """Say whether the first, second, fourth, eighth and so on is among the newest.

    Args:
        count: How often it has happened, the newest included.
        new: How many are the newest, at least 1.
    """
    return count.bit_length() > (count - new).bit_length()
