"""Progress of long work: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from rg_env import logs

logger = logging.getLogger(__name__)

LINE_EVERY_S = 10.0


@contextlib.asynccontextmanager
async def said_every(period_s: float, say: Callable[[], None]) -> AsyncIterator[None]:
    """Call `say` again and again as long as something else is awaited."""

    async def speak() -> None:
        while True:
            await asyncio.sleep(period_s)
            say()

    speaking = asyncio.ensure_future(speak())
    try:
        yield
    finally:
        speaking.cancel()


class WorkProgress:
    """Shows how much of some work is done.

    Args:
        title: What the work is, e.g. "evaluation".
        total: Its size, in `unit`s.
        unit: The plural of what is counted.
        done: How much of it was done before.
    """

    def __init__(self, title: str, total: int, unit: str, done: int = 0) -> None:
        self._title = title
        self._total = total
        self._unit = unit
        self._done = done
        self._last_line = time.monotonic()
        self._open = contextlib.ExitStack()
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=total, completed=done, note="")

    def __enter__(self) -> WorkProgress:
        """Show the bar."""
        self._open.enter_context(self._bar)
        if not self._bar.disable:
            self._open.enter_context(logs.above_live_view())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the bar as it is."""
        self._open.close()

    def advance(self, note: str = "", by: int = 1) -> None:
        """Count so many more as done; `note` is shown beside the bar."""
        self._done += by
        self._bar.update(self._task, advance=by, note=note)
        now = time.monotonic()
        is_due = now - self._last_line >= LINE_EVERY_S
        is_due |= by > 0 and self._done == self._total
        if self._bar.disable and is_due:
            self._last_line = now
            logger.info(
                "%s: %d of %d %s",
                self._title,
                self._done,
                self._total,
                f"{self._unit} {note}".rstrip(),
            )
