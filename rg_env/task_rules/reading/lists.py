r"""Parses lists, moves and grids as people write them: marks, arrows, commas, lines.

`A+1, B-2`, `A+1 → B-2`, `1. A+1` above `2. B-2` and `["A+1", "B-2"]` are the same list.
Only such separators may stand between elements. Any other text, such as a second
answer, a choice or a denial, makes the list unreadable.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator

from rg_env.task_rules.reading.values import read_list, read_rows
from rg_env.task_rules.rules import Entry, Guard, Notation

_ARROW = re.compile(
    "[-=\u2013\u2014\u2212]{1,4}>|[\u2192\u21d2\u21e8\u27f6\u27f9\u279c\u279d\u279e\u27a1"
    "\u2794\u21a6\u2799\u27a4\u25b6\u25ba]\ufe0f?"
    r"|\\(?:to|(?:long)?rightarrow|(?:Long)?[Rr]ightarrow|implies|mapsto)(?![A-Za-z])"
)
_CODE = re.compile(r"(?<!\w)`([^`]*)`")

_MARK = re.compile(
    r"(?:(?:step|move|row|line|turn)[ \t]*)?\(?#?([0-9]{1,6})[.):](?:\s+|$)",
    re.IGNORECASE,
)
"""The number of an element: `1.`, `2)`, `(3)`, `Step 4:`."""

_QUOTES = "\"'\u201c\u201d\u2018\u2019"
_BETWEEN = re.compile(rf"(?:[\s,;\u2192{_QUOTES}]|\.(?=\s|$))*")
"""Separators of the elements of a list."""


def plain(text: str) -> str:
    """Remove bold and code inside a text, and write all arrows with one sign."""
    return _CODE.sub(r"\1", _ARROW.sub("\u2192", text.replace("**", ""))).strip()


def _without_brackets(text: str) -> str:
    """Remove one pair of brackets around a whole text."""
    if text[:1] + text[-1:] in ("[]", "()", "{}"):
        inner = text[1:-1]
        if not any(bracket in inner for bracket in "[](){}"):
            return inner.strip()
    return text


def _elements(text: str, element: re.Pattern[str]) -> Iterator[re.Match[str] | None]:
    """Yield each element; yield None and stop at anything else."""
    number = 1
    start = _separator_end(text, 0)
    while start < len(text):
        mark = _MARK.match(text, start)
        if mark is not None and int(mark[1]) == number:
            number += 1
            start = _separator_end(text, mark.end())
        match = element.match(text, start)
        yield match
        if match is None:
            return
        start = _separator_end(text, match.end())
        if start == match.end() < len(text):
            yield None
            return


def _separator_end(text: str, start: int) -> int:
    match = _BETWEEN.match(text, start)
    return match.end() if match else start


def read_sequence(text: str, element: re.Pattern[str]) -> list[re.Match[str]] | None:
    """Parse a text from `plain` that contains only elements; None for anything else.

    Two elements need a separator. Numbers that count from 1 are marks of the elements.
    """
    listed = read_list(text)
    if listed is not None:
        matches = [element.fullmatch(plain(written)) for written in listed]
    else:
        matches = list(_elements(_without_brackets(text), element))
    found = [match for match in matches if match is not None]
    return found if found and len(found) == len(matches) else None


# -- canonical form --------------------------------------------------------------------

INTEGER = re.compile(r"-?[0-9]+(?![\w.])|-?[0-9]+(?=\.(?:\s|$))")
WORD = re.compile(r"\w+")


def list_notation(
    element: re.Pattern[str],
    join: Callable[[list[str]], str],
    written: Callable[[re.Match[str]], str] = operator.itemgetter(0),
) -> Notation:
    """Return the notation that writes each element of a list, and joins them.

    Example:
        >>> list_notation(INTEGER, " ".join)("[3, 4]", {})
        '3 4'
    """

    def notation(answer: str, entry: Entry) -> str:
        elements = read_sequence(plain(answer), element)
        return answer if elements is None else join(list(map(written, elements)))

    return notation


# -- grids -----------------------------------------------------------------------------

#   1 2     1, 2     | 1 | 2 |     [[1, 2],     [[1 2]
#   3 4     3, 4     | 3 | 4 |      [3, 4]]      [3 4]]
#
# are the same grid. All rows must have the same number of cells, and every cell must
# match the task's pattern; otherwise the text is not a grid.

Cells = list[list[str]]
_BRACKETS = re.compile(r"\[?\s*(?:\[[^\[\]]*\][\s,;]*)+\]?")
_IN_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_BETWEEN_CELLS = re.compile("[\\s|,;&\u2502\u2503\u2551]+")


def _cells(line: str) -> list[str]:
    cells = (cell.strip(_QUOTES) for cell in _BETWEEN_CELLS.split(line))
    return [cell for cell in cells if cell]


def read_grid(text: str, cell: re.Pattern[str]) -> Cells | None:
    """Parse the rows of a grid; None if the text is not a grid.

    Example:
        >>> read_grid("| 1 | 2 |", INTEGER_CELL)
        [['1', '2']]
    """
    rows = read_rows(text)
    if rows is None:
        lines = plain(text).replace(";", "\n").split("\n")
        if "[" in text:
            lines = _IN_BRACKETS.findall(text) if _BRACKETS.fullmatch(text) else []
        rows = [_cells(line) for line in lines if line.strip("|+:- \t")]
    if not rows or not all(rows) or any(len(row) != len(rows[0]) for row in rows):
        return None
    return rows if all(map(cell.fullmatch, set().union(*rows))) else None


INTEGER_CELL = re.compile(r"-?[0-9]{1,9}")
DECIMAL_CELL = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{0,20})?")
QUEEN_CELL = re.compile(r"[_Q]")


def grid_notation(cell: re.Pattern[str]) -> Notation:
    """Return the notation that writes a grid with a space between two cells."""

    def notation(answer: str, entry: Entry) -> str:
        rows = read_grid(answer, cell)
        return answer if rows is None else "\n".join(map(" ".join, rows))

    return notation


# -- lists that the library evaluates --------------------------------------------------

_ITEM = re.compile(r"[0-9]{1,9}|'[^'\\\n]*'|\"[^\"\\\n]*\"")
_LIST = re.compile(r"[\[(](?:n(?:,n)*,?)?[\])]")
_ITEMS = re.compile(r"n(?:,n)*,?")


def why_not_list(text: str, plain_rows: re.Pattern[str]) -> str | None:
    """Return why a text is neither plain rows nor a list, None if it is one.

    Matches of `plain_rows` must be harmless to evaluate, and found in linear time.
    """
    if plain_rows.fullmatch(text):
        return None
    shape, count = _ITEM.subn("n", text)
    if shape.count("n") > count:  # an `n` in the text would look like an item
        return "a name where a value was expected"
    shape = "".join(shape.split())
    for _ in range(3):  # lists in lists in lists
        shape = _LIST.sub("n", shape)
    return None if _ITEMS.fullmatch(shape) else "not rows or a list of plain values"


def literal_guard(plain_rows: str) -> Guard:
    """Return the guard of a scorer that may call `eval` on the answer.

    It admits rows that `plain_rows` matches, and nested lists or tuples of numbers and
    strings: no name, operator, call, index, prefix or backslash.
    """
    pattern = re.compile(plain_rows)
    return Guard(lambda answer, gold: why_not_list(answer, pattern), evaluates=True)


# -- repeated moves --------------------------------------------------------------------


def repetition_guard(
    find_counts: Callable[[str], Iterable[str]], max_moves: int
) -> Guard:
    """Return the guard of a scorer that repeats moves as often as the answer says.

    `find_counts` returns the count of each move in an answer; "" means 1.
    """

    def why_not(answer: str, gold: str | None) -> str | None:
        counts = list(find_counts(answer))
        if any(len(count) > 2 for count in counts):
            return "a move is repeated too often"
        is_long = sum(int(count or 1) for count in counts) > max_moves
        return f"more than {max_moves} moves" if is_long else None

    return Guard(why_not)
