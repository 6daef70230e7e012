"""Entries of the library that nobody should be asked."""

from __future__ import annotations


class UnusableEntry(RuntimeError):
    """The library made an entry that nobody should be asked.

    Attributes:
        task: The registered task.
        reason: What is wrong with the entry.
    """

    def __init__(self, task: str, reason: str) -> None:
        super().__init__(f"{task}: {reason}")
        self.task = task
        self.reason = reason
