"""The levels and handlers of the log.

Mends B12 of docs/host_defects.md: the framework sets its loggers to DEBUG.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

from rg_env.errors import printable, visible

FRAMEWORK_LOGGERS = (
    "atroposlib",
    "atroposlib.envs.base",
    "atroposlib.envs.server_handling",
)
"""The framework sets some of these to DEBUG on import, so each is set by name."""

OWN_LOGGER = "rg_env"
PROGRESS_LOGGER = "rg_env.results.terminal"
"""The logger of lines about work in progress, which every command shows."""


class _OneLine(logging.Formatter):
    """Escapes characters that would steer a terminal, or look like another line."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return visible(super().formatException(ei))


class _StandardError(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes a line an event to the `sys.stderr` of now, which a live view replaces.

    It names packages that are not ours, and our modules for DEBUG.
    """

    def __init__(self) -> None:
        super().__init__()
        form = "%(asctime)s %(levelname)-7s %(part)s%(message)s"
        self.setFormatter(_OneLine(form, "%H:%M:%S"))

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        package, _, module = record.name.partition(".")
        if package != OWN_LOGGER:
            record.msg = " ".join(record.getMessage().split())
            record.args = ()
        elif record.levelno <= logging.DEBUG:
            package = module.rpartition(".")[2]
        else:
            package = ""
        record.part = f"{package}: " if package else ""
        super().emit(record)


_own_level: int | None = None


def override_level(level: int | None) -> None:
    """Set the level of our log, whatever the settings say; None leaves it to them."""
    global _own_level
    _own_level = level
    if level is not None:
        for name in (OWN_LOGGER, PROGRESS_LOGGER):
            logging.getLogger(name).setLevel(level)


def set_levels(debug: bool, quiet_framework: bool) -> None:
    """Set the levels of our loggers and the framework's.

    In a program that has not set up logging, ours writes to standard error.
    """
    own = logging.getLogger(OWN_LOGGER)
    level = _own_level or (logging.DEBUG if debug else logging.INFO)
    own.setLevel(level)
    if not own.hasHandlers():
        own.addHandler(_StandardError())
    for name in FRAMEWORK_LOGGERS:
        theirs = logging.WARNING if quiet_framework else logging.DEBUG
        logging.getLogger(name).setLevel(theirs)
    # The hub has a handler of its own beside ours.
    logging.getLogger("huggingface_hub").handlers.clear()


def start() -> None:
    """Write the log to standard error, for a program of ours."""
    logging.basicConfig(handlers=[_StandardError()], level=logging.WARNING)
    override_level(None)
    logging.getLogger(PROGRESS_LOGGER).setLevel(logging.INFO)


def should_log(count: int, new: int = 1) -> bool:
    """Return whether to log an event that repeats: the 1st, 2nd, 4th, 8th, ... time.

    Args:
        count: How often it has happened.
        new: How many of these are new since the last call, at least 1.
    """
    return count.bit_length() > (count - new).bit_length()
