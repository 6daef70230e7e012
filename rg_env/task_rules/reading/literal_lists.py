"""Lists of numbers and strings as text, written plainly or as Python writes them.

The library compares such answers with the gold text and otherwise calls `eval` on
them, so that `[[0, 1], [1, 0]]` earns a little. A text is admitted if it is plain rows
of the task's own characters, or nested lists or tuples of numbers and strings: no
name, no operator, no call, no index, no prefix, no backslash.

Nothing is evaluated here. Time is linear in the text: every repetition below is over
characters that nothing beside it can match.
"""

from __future__ import annotations

import re

MAX_LIST_DEPTH = 3

_ITEM = re.compile(r"[0-9]{1,9}|'[^'\\\n]*'|\"[^\"\\\n]*\"")
_LIST = re.compile(r"[\[(](?:n(?:,n)*,?)?[\])]")
_ITEMS = re.compile(r"n(?:,n)*,?")


def why_not_list(text: str, plain: re.Pattern[str]) -> str | None:
    """Return why a text is neither plain rows nor a list, None where it is one.

    Args:
        text: Any text.
        plain: What plain rows look like; has to be harmless to evaluate and linear.
    """
    if plain.fullmatch(text):
        return None
    shape, count = _ITEM.subn("n", text)
    if shape.count("n") > count:  # its own would look like items
        return "a name where a value was expected"
    shape = "".join(shape.split())
    for _ in range(MAX_LIST_DEPTH):
        shape = _LIST.sub("n", shape)
    return None if _ITEMS.fullmatch(shape) else "not rows or a list of plain values"
