"""The numbers of rectangles that a grid of rectangle_count can show.

A cross is two bars or its four arms; two rows that two rectangles have in common are
a row of small squares as well. The question says how often a cell is drawn and not how
small a rectangle may be: each number of rectangles, of 2 by 2 cells and more, that
draws the grid is an answer to it.

The first cell of a grid, row by row, is a corner of a rectangle. So rectangles are
taken off it from there in every way, in each part of the grid that hangs together. A
set of cells is a number whose bits they are, row after row.
"""

from __future__ import annotations

from collections.abc import Iterator

from rg_env.task_rules.reading.numbers import as_number
from rg_env.task_rules.rules import Entry, ItemCheck, LibraryScore, ScorerFix, TaskRules

MAX_STEPS = 300
"""Rectangles tried in one part. Where there is one number it is known within 100, but
for 1 of 300 grids; what is not known after these has several nearly always."""

_ONCE = str.maketrans(" #█", "011")
_TWICE = str.maketrans(" #█", "001")


def _bits(cells: int) -> Iterator[int]:
    while cells:
        lowest = cells & -cells
        yield lowest.bit_length() - 1
        cells ^= lowest


def _parts(cells: int, stride: int) -> Iterator[int]:
    """Yield the sets of cells that hang together by their sides."""
    while cells:
        part, grown = 0, cells & -cells
        while grown != part:
            part = grown
            grown |= part << 1 | part >> 1 | part << stride | part >> stride
            grown &= cells
        yield part
        cells &= ~part


def _outlines(cells: int, stride: int, column: int) -> Iterator[int]:
    """Yield the outlines within some cells that begin at the first of them.

    Args:
        cells: Not empty.
        stride: Bits from one row to the next; the last of a row is never set.
        column: The cells of the first column.
    """
    first = (cells & -cells).bit_length() - 1
    cells >>= first
    row = cells & ~(cells + 1)  # cells beside the first one, without a gap
    gaps = column & ~cells
    side = column & ((gaps & -gaps) - 1)
    corners = [right for right in _bits(row & cells >> stride) if right]
    for below in _bits(side & cells & cells >> 1):
        for right in corners if below else ():
            edge = (2 << right) - 1
            upright = column & ((2 << below) - 1)
            outline = edge | edge << below | upright | upright << right
            if not outline & ~cells:
                yield outline << first


def _shows_one_count(once: int, twice: int, stride: int, column: int) -> bool:
    """Say whether all ways to draw a part, cells once and twice, have one number."""
    counts = set[int]()
    waiting = [(once, twice, 0)]
    for _ in range(MAX_STEPS):
        if not waiting:
            return True
        once, twice, count = waiting.pop()
        if not once:
            counts.add(count)
            if len(counts) > 1:
                return False
            continue
        for outline in _outlines(once, stride, column):
            rest = once & ~outline | twice & outline
            waiting.append((rest, twice & ~outline, count + 1))
    return False


def may_show_another_count(puzzle: str) -> bool:
    """Say whether not one number of rectangles alone is sure to draw a grid.

    Its rows are of ` `, `#` and, where two are drawn, `█`.
    """
    rows = puzzle.rstrip("\n").split("\n")
    stride = len(rows[0]) + 1
    text = " ".join(rows)[::-1]
    once, twice = int(text.translate(_ONCE), 2), int(text.translate(_TWICE), 2)
    column = sum(1 << row * stride for row in range(len(rows) + 1))
    return not all(
        _shows_one_count(part, twice & part, stride, column)
        for part in _parts(once, stride)
    )


def _right_count(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a count; one that is nearly right is wrong.

    The library gives 0.64 for one too many or too few, 0.16 for four, so that a number
    from the middle scores 0.45 at the defaults and 0.67 where there are 5 at most.
    """
    value = library(answer)
    return value if value == 1.0 else 0.0


RULES = TaskRules(
    "rectangle_count",
    notation=as_number,
    fix=ScorerFix(
        scorer_sha256="419a82adc99f105123f8472bbd6a261aa1704e3d51ae9b3e292da37260a71601",
        fault="Gives credit for a count that is off by up to four; always answering a"
        " medium count scores 0.45.",
        score=_right_count,
    ),
    item_checks=(
        ItemCheck(
            "grid shows another number of rectangles as well, or may show one",
            lambda entry: may_show_another_count(entry["metadata"]["puzzle"]),
        ),
    ),
)
