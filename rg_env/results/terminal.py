"""What a terminal shows: tables as wide as it is, and how far long work is.

Without a terminal a table has all the room that it needs, and progress is a log line
every ten seconds.
"""

from __future__ import annotations

import datetime
import logging
import os
import time
from collections.abc import Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

logger = logging.getLogger(__name__)

PIPE_WIDTH = 1000
LINE_EVERY_S = 10.0


def rendered(*parts: RenderableType) -> str:
    """Return the terminal's text of tables and texts; a pipe has room for all."""
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


class NumberTable(Table):
    """A table of names and numbers, without its last columns until it fits.

    A cell is folded if it must be: nothing of it is cut.
    """

    def __init__(self, name: str, numbers: Sequence[str], title: str) -> None:
        super().__init__(
            Column(name, overflow="fold"),
            *(Column(head, overflow="fold", justify="right") for head in numbers),
            title=title,
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
        )

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Draw the columns that have room, and name the others below."""
        whole = self.columns
        widest = options.update(width=PIPE_WIDTH)
        while (
            len(self.columns) > 2
            and self.__rich_measure__(console, widest).maximum > options.max_width
        ):
            self.columns = self.columns[:-1]
        yield from super().__rich_console__(console, options)
        if gone := whole[len(self.columns) :]:
            names = ", ".join(str(column.header) for column in gone)
            yield Text(f"no room for: {names}")
        self.columns = whole


class WorkProgress:
    """Shows how much of some work is done.

    Args:
        title: What the work is, e.g. "evaluation".
        total: Its size, in `unit`s.
        unit: The plural of what is counted.
        done: How much of it was done before.
    """

    def __init__(self, title: str, total: float, unit: str, done: int = 0) -> None:
        self._title = title
        self._total = total
        self._unit = unit
        self.done: float = done
        self._before = done
        self._began_s = self._logged_s = time.monotonic()
        console = Console(stderr=True)
        self._has_bar = console.is_terminal
        line = TextColumn(
            "{task.description}", markup=False, table_column=Column(overflow="fold")
        )
        self._bar = Progress(
            TimeElapsedColumn(),
            line,
            BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=8)),
            console=console,
            expand=True,
            disable=not self._has_bar,
        )
        self._task = self._bar.add_task(self._line(), total=total, completed=done)

    def __enter__(self) -> WorkProgress:
        """Show the bar."""
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the bar as it is."""
        self._bar.stop()

    def advance(self, note: str = "", by: float = 1) -> None:
        """Count `by` more as done; `note` is shown beside the bar."""
        self.done += by
        line = self._line(note)
        now_s = time.monotonic()
        self._bar.update(self._task, advance=by, description=line)
        is_due = now_s - self._logged_s >= LINE_EVERY_S or self.done == self._total
        if is_due and by > 0 and not self._has_bar:
            self._logged_s = now_s
            logger.info("%s", line)

    def _line(self, note: str = "") -> str:
        """Return how far it is, at which rate, and until when."""
        parts = [f"{self.done:.0f} of {self._total:.0f} {self._unit}"]
        rate = (self.done - self._before) / (time.monotonic() - self._began_s + 1e-9)
        if rate > 0 and self.done < self._total:
            end = datetime.timedelta(seconds=round((self._total - self.done) / rate))
            parts.append(f"{rate:.3g} {self._unit}/s, {end} left")
        return f"{self._title}: {', '.join([*parts, *[note] * bool(note)])}"
