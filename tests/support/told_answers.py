"""Answers that are told to a simulated model: by the probe of a benchmark, say.

One question and its answer is a line of JSON on a Unix socket:

    {"question": "2 + 2?", "answer": "4"}

Instead of an answer a line may hold `task` and `metadata`, from which an example of a
right answer is made.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rg_env.task_rules.table import solution

MAX_LINE_BYTES = 16 * 1024**2
MAX_KNOWN = 20_000


class ToldAnswers:
    """Questions whose answers were told, the oldest forgotten first."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def learn(self, told: Mapping[str, Any]) -> None:
        """Take in one question and its answer, or an example from its metadata."""
        answer = solution(told.get("task", ""), told)
        if answer is None:
            return
        self._known[told["question"]] = answer
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]

    def lookup(self, question: str) -> str | None:
        """Return the answer of a question, or None."""
        return self._known.get(question)

    async def listen(self, path: Path) -> asyncio.AbstractServer:
        """Learn what is told through a Unix socket, until the result is closed."""

        async def take(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            while line := await reader.readline():
                self.learn(json.loads(line))
            writer.close()

        return await asyncio.start_unix_server(take, path, limit=MAX_LINE_BYTES)
