"""Entries whose making a test can slow down and whose questions it can choose."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any


class UnusableEntry(Exception):
    """Named as the library room's own."""


def make_entry(task: str, params: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Make an entry as its parameters say.

    Args:
        task: Part of the question.
        params: `sleep_s`: how long it takes; `space`: how many different questions
            the task has; `unusable_below`: entries of seeds below are unusable.
        seed: Decides the question.
    """
    time.sleep(params.get("sleep_s", 0.0))
    if seed < params.get("unusable_below", 0):
        raise UnusableEntry(task)
    number = seed % params.get("space", 2**32)
    return {"question": f"{task} {number}", "answer": str(number), "metadata": {}}
