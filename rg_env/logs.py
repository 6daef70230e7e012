"""Who may write how much to the log.

Mends B12 of docs/host_defects.md: the framework sets its loggers to DEBUG.
"""

from __future__ import annotations

import logging

FRAMEWORK_LOGGERS = (
    "atroposlib",
    "atroposlib.envs.base",
    "atroposlib.envs.server_handling",
)
"""The framework sets some of these to DEBUG on import, so each is set by name."""

OWN_LOGGER = "rg_env"

LINE_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def set_levels(debug: bool, quiet_framework: bool) -> None:
    """Set the levels of our loggers and the framework's."""
    logging.getLogger(OWN_LOGGER).setLevel(logging.DEBUG if debug else logging.INFO)
    for name in FRAMEWORK_LOGGERS:
        logging.getLogger(name).setLevel(
            logging.WARNING if quiet_framework else logging.DEBUG
        )


def start() -> None:
    """Write the log to standard error, for a program of ours."""
    logging.basicConfig(format=LINE_FORMAT, datefmt="%H:%M:%S", level=logging.WARNING)
    # Its tries to reach the hub end in one sentence of ours.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
