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

OUR_LOGGER = "rg_env"
PROGRESS_LOGGER = "rg_env.results.terminal"
"""The logger of lines about work in progress, which every command shows."""


class _OneLine(logging.Formatter):
    """Writes an event on one line, and escapes what would steer a terminal.

    The line begins with the package if that is not ours, and with our module for DEBUG.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        message = record.message
        package, _, module = record.name.partition(".")
        if package != OUR_LOGGER:
            message = f"{package}: {' '.join(message.split())}"
        elif record.levelno <= logging.DEBUG:
            message = f"{module.rpartition('.')[2]}: {message}"
        record.message = printable(message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return visible(super().formatException(ei))


class _StandardError(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to the current `sys.stderr`, which a live view replaces."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(
            _OneLine("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")
        )

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


_level_override: int | None = None


def override_level(level: int | None) -> None:
    """Override the level of our loggers in the settings; None ends that."""
    global _level_override
    _level_override = level
    if level is not None:
        for name in (OUR_LOGGER, PROGRESS_LOGGER):
            logging.getLogger(name).setLevel(level)


def set_levels(debug: bool, quiet_framework: bool) -> None:
    """Set the levels of our loggers and the framework's.

    In a program that has not set up logging, ours write to standard error.
    """
    ours = logging.getLogger(OUR_LOGGER)
    ours.setLevel(_level_override or (logging.DEBUG if debug else logging.INFO))
    if not ours.hasHandlers():
        ours.addHandler(_StandardError())
    framework_level = logging.WARNING if quiet_framework else logging.DEBUG
    for name in FRAMEWORK_LOGGERS:
        logging.getLogger(name).setLevel(framework_level)
    # Its lines would appear twice, as it has a handler of its own.
    logging.getLogger("huggingface_hub").handlers.clear()


def start() -> None:
    """Have a program of ours write its log to standard error."""
    logging.basicConfig(handlers=[_StandardError()], level=logging.WARNING)
    override_level(None)
    logging.getLogger(PROGRESS_LOGGER).setLevel(logging.INFO)


def should_log(count: int, new: int = 1) -> bool:
    """Return whether to log an event that repeats: the 1st, 2nd, 4th, 8th, ... time.

    Args:
        count: How often the event has happened.
        new: How many of these are new since the last call, at least 1.
    """
    return count.bit_length() > (count - new).bit_length()
