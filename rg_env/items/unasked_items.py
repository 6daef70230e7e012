"""Items that were not asked, because their entries are faulty."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

logger = logging.getLogger(__name__)


class UnaskedItems:
    """How many there were, by task and fault.

    Attributes:
        counts: Number of items by task and what is wrong with them.
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def add(self, task: str, said: str) -> None:
        """Count an item; the first, tenth, hundredth and so on of a fault is logged.

        Args:
            task: The task that made it.
            said: What the worker says of it, which begins with the task.
        """
        fault = said.removeprefix(f"{task}: ")
        self.counts[task, fault] += 1
        number = self.counts[task, fault]
        if set(str(number)[1:]) <= {"0"} and str(number).startswith("1"):
            items = "1 item was" if number == 1 else f"{number} items were"
            logger.info("%s: %s not asked: %s", task, items, fault)

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Return columns and rows of a table: a row for each fault of a task."""
        rows = [[*names, number] for names, number in sorted(self.counts.items())]
        return ["task", "fault", "items"], rows
