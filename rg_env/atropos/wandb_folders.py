"""W&B's temporary folders, made when it writes into them.

W&B makes two at its import, whether it is used or not, and a process that is killed
leaves them.
"""

from __future__ import annotations

import functools
import importlib
import tempfile
from unittest import mock


class _MadeWhenNamed:
    """A `tempfile.TemporaryDirectory` that is there once its name is asked for."""

    def __init__(self, suffix: str | None = None) -> None:
        self._suffix = suffix

    @functools.cached_property
    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(self._suffix)

    @property
    def name(self) -> str:
        return self._folder.name

    def cleanup(self) -> None:
        if "_folder" in vars(self):
            self._folder.cleanup()


def import_wandb() -> None:
    """Import W&B; to be called before anything else imports it."""
    with mock.patch("tempfile.TemporaryDirectory", _MadeWhenNamed):
        importlib.import_module("wandb")
