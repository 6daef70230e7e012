"""Tables that fit where they are printed, in which no number and no name is cut."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

WIDEST_NAME = 40
"""The longest name that has a column to itself; a longer one is folded."""

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
        whole, title = self.columns, self.title
        shown, left_out = list(whole), list[str]()
        if title:  # else folded to the width of the table
            yield Text(str(title), style="table.title")
        self.title = None

        def take(columns: Sequence[Column]) -> bool:
            """Make these the columns; say whether they need more room."""
            # rich leaves out the padding at the edges by `_index`.
            self.columns = [replace(c, _index=n) for n, c in enumerate(columns)]
            sizes = [self._measure_column(console, widest, c) for c in self.columns]
            needed = self._extra_width
            for column, size in zip(self.columns, sizes, strict=True):
                folded = min(size.minimum, WIDEST_NAME)
                needed += size.maximum if column.no_wrap else folded
            is_too_wide = needed > options.max_width
            for column, size in zip(self.columns, sizes, strict=True):
                if not column.no_wrap:
                    padding = self._get_padding_width(column._index)
                    folded = min(size.minimum, WIDEST_NAME) - padding
                    # In a window that is too narrow for all, names give way.
                    column.min_width = None if is_too_wide else folded
            return is_too_wide

        widest = options.update(width=PIPE_WIDTH)
        for heading in self._leaves_out:
            if not take(shown):
                break
            left_out.append(heading)
            shown = [column for column in shown if column.header != heading]
        while shown:
            last = len(shown)
            # One column after the first has to be shown, or this would not end.
            while take(shown[:last]) and last > 2:
                last -= 1
            yield from super().__rich_console__(console, options)
            shown = [*shown[:1], *shown[last:]] if last < len(shown) else []
        if left_out:
            yield Text(f"no room for: {', '.join(left_out)}")
        self.columns, self.title = whole, title
