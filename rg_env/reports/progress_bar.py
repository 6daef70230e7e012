"""Progress of long work: a bar on a terminal, otherwise a line from time to time.

The first line appears after two seconds.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import threading
import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column

logger = logging.getLogger(__name__)

FIRST_LINE_S = 2.0
LINE_EVERY_S = 10.0


class WorkProgress:
    """Shows how much of some work is done.

    Args:
        title: What the work is, e.g. "evaluation".
        total: Its size, in `unit`s; 0 if nobody knows, and then nothing of a bar stays.
        unit: The plural of what is counted.
        done: How much of it was done before.
    """

    def __init__(
        self, title: str, total: int = 0, unit: str = "", done: int = 0
    ) -> None:
        self._title = title
        self._total = total
        self._unit = unit
        self._done = self._before = done
        self._note = ""
        self._began_s = time.monotonic()
        self._is_over = threading.Event()
        self._open = contextlib.ExitStack()
        console = Console(stderr=True)
        self._has_bar = console.is_terminal
        self._bar = Progress(
            TimeElapsedColumn(),
            TextColumn(
                "{task.fields[line]}",
                markup=False,
                table_column=Column(overflow="fold"),  # nothing of it is cut
            ),
            BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=8)),
            console=console,
            expand=True,
            transient=not total,
            disable=not self._has_bar,
        )
        self._task = self._bar.add_task(
            title, total=total or None, completed=done, line=self._line()
        )

    def __enter__(self) -> WorkProgress:
        """Show the bar."""
        self._open.enter_context(self._bar)
        if not self._has_bar:
            threading.Thread(target=self._speak, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the bar as it is."""
        self._is_over.set()
        self._open.close()

    def advance(self, note: str = "", by: int = 1) -> None:
        """Count `by` more as done; `note` is shown beside the bar."""
        self._done += by
        self._note = note
        self._bar.update(self._task, advance=by, line=self._line())
        if not self._has_bar and by > 0 and self._done == self._total:
            logger.info("%s", self._line())

    def _speak(self) -> None:
        """Say how far it is, also while nothing advances."""
        wait_s = FIRST_LINE_S
        while not self._is_over.wait(wait_s):
            if not self._total or self._done < self._total:
                logger.info("%s", self._line())
            wait_s = LINE_EVERY_S

    def _line(self) -> str:
        """Return how far it is, at which rate, and until when."""
        took_s = time.monotonic() - self._began_s
        parts = [f"{self._done} of {self._total} {self._unit}"]
        if not self._total:
            parts = [] if self._has_bar else [f"{took_s:.0f} s"]
        rate = (self._done - self._before) / took_s if took_s > 0 else 0.0
        left = self._total - self._done
        if rate > 0 and left > 0:
            end = datetime.timedelta(seconds=round(left / rate))
            shown = f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}"
            parts.append(f"{shown} {self._unit}/s, {end} left")
        parts += [self._note] * bool(self._note)
        return f"{self._title}: {', '.join(parts)}" if parts else self._title
