"""Tables that fit into the terminal, and the progress of long work.

Without a terminal, tables are as wide as they need, and progress is logged every ten
seconds.
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
LOG_INTERVAL_S = 10.0


def rendered(*parts: RenderableType) -> str:
    """Return tables and texts as the text for the terminal, or for a pipe."""
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


class NumberTable(Table):
    """A table of names and numbers, which drops its last columns to fit.

    No cell is truncated; a long one is folded.
    """

    def __init__(self, name: str, headings: Sequence[str], title: str) -> None:
        super().__init__(
            Column(name, overflow="fold"),
            *(Column(text, overflow="fold", justify="right") for text in headings),
            title=title,
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
        )

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Draw the columns that fit, and name the others below."""
        all_columns = self.columns
        widest = options.update(width=PIPE_WIDTH)
        while (
            len(self.columns) > 2
            and self.__rich_measure__(console, widest).maximum > options.max_width
        ):
            self.columns = self.columns[:-1]
        yield from super().__rich_console__(console, options)
        if dropped := all_columns[len(self.columns) :]:
            names = ", ".join(str(column.header) for column in dropped)
            yield Text(f"no room for: {names}")
        self.columns = all_columns


class WorkProgress:
    """Shows the progress of some work, as a bar or in the log.

    Args:
        title: The name of the work, such as "evaluation".
        total: The size of the work, in units.
        unit: The plural of the unit, such as "items".
        done: The part that was done before.

    Example:
        with WorkProgress("evaluation", 20, "items") as progress:
            progress.advance("mean score 0.5")
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
        """Stop the bar, which stays as it is."""
        self._bar.stop()

    def advance(self, note: str = "", by: float = 1) -> None:
        """Count `by` more units as done, and show a note beside them."""
        self.done += by
        line = self._line(note)
        now_s = time.monotonic()
        self._bar.update(self._task, advance=by, description=line)
        is_due = now_s - self._logged_s >= LOG_INTERVAL_S or self.done == self._total
        if is_due and by > 0 and not self._has_bar:
            self._logged_s = now_s
            logger.info("%s", line)

    def _line(self, note: str = "") -> str:
        """Return what is done, the rate and the time left."""
        parts = [f"{self.done:.0f} of {self._total:.0f} {self._unit}"]
        rate = (self.done - self._before) / (time.monotonic() - self._began_s + 1e-9)
        if rate > 0 and self.done < self._total:
            left = datetime.timedelta(seconds=round((self._total - self.done) / rate))
            parts.append(f"{rate:.3g} {self._unit}/s, {left} left")
        if note:
            parts.append(note)
        return f"{self._title}: {', '.join(parts)}"
