"""Tables that fit where they are printed, in which no number and no name is cut."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

WIDEST_NAME = 40
"""Of a name that has a column to itself; a longer one is folded."""

LEAST_NAME = 8
"""Of a name that is folded in a terminal which is narrower than any table."""

PIPE_WIDTH = 1000
"""Nothing is left out where no terminal says how wide it is."""


def width_of(console: Console) -> int:
    """Return the columns that a table may have."""
    has_width = console.is_terminal or "COLUMNS" in os.environ
    return console.width if has_width else PIPE_WIDTH


class FittingTable(Table):
    """A table that leaves out columns, in a given order, until the others fit.

    If none is left to leave out, the others go below, again after the first column.
    Numbers stay whole; long names and sentences are folded.

    Args:
        names: Headings of the columns on the left, which may be folded.
        numbers: Headings of the columns after them.
        leaves_out: Headings of columns that may be left out, the first one first.
    """

    def __init__(
        self,
        names: Sequence[str],
        numbers: Sequence[str],
        leaves_out: Sequence[str] = (),
        **options: Any,
    ) -> None:
        super().__init__(title_justify="left", **options)
        for heading in names:
            self.add_column(heading, overflow="fold")
        for heading in numbers:
            self.add_column(heading, justify="right", no_wrap=True)
        self._leaves_out = [name for name in leaves_out if name in numbers]

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Draw the columns that have room, and name those that are left out below."""
        whole, room = self.columns, options.max_width
        shown, left_out = list(whole), list[str]()
        for heading in self._leaves_out:
            if self._needed(shown, console, options) <= room:
                break
            left_out.append(heading)
            shown = [column for column in shown if column.header != heading]
        if self.title:  # else folded to the width of the table
            yield Text(str(self.title), style="table.title")
        title, self.title = self.title, None
        while shown:
            last = len(shown)
            # One column after the first has to be shown, or this would not end.
            while last > 2 and self._needed(shown[:last], console, options) > room:
                last -= 1
            self._take(shown[:last], console, options)
            yield from super().__rich_console__(console, options)
            shown = [*shown[:1], *shown[last:]] if last < len(shown) else []
        if left_out:
            yield Text(f"no room for: {', '.join(left_out)}")
        self.columns, self.title = whole, title

    def _sizes(
        self, shown: Sequence[Column], console: Console, options: ConsoleOptions
    ) -> list[tuple[int, int]]:
        """Make these the columns; return the widths that they need and could use."""
        columns = enumerate(shown)
        # rich leaves out the padding at the edges by `_index`.
        self.columns = [dataclasses.replace(c, _index=n) for n, c in columns]
        widest, found = options.update(width=PIPE_WIDTH), []
        for column in self.columns:
            size = self._measure_column(console, widest, column)
            folded = min(size.minimum, WIDEST_NAME)
            needed = size.maximum if column.no_wrap else folded
            found.append((needed, size.maximum))
        return found

    def _needed(self, *of: Any) -> int:
        return sum(needed for needed, _ in self._sizes(*of)) + self._extra_width

    def _take(
        self, shown: Sequence[Column], console: Console, options: ConsoleOptions
    ) -> None:
        """Make these the columns; those that fold share the room, or what it lacks."""
        sizes = self._sizes(shown, console, options)
        left = options.max_width - self._extra_width - sum(n for n, _ in sizes)
        for column, (needed, most) in zip(self.columns, sizes, strict=True):
            if not column.no_wrap:
                more = max(min(most - needed, left), min(0, LEAST_NAME - needed))
                column.width = needed + more - self._get_padding_width(column._index)
                left -= more
