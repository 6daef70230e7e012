"""Foreign text as a terminal may show it: what would steer the terminal is escaped.

Line breaks and tabs stay, and so does every character that has a picture; nothing is
wrapped, so that a grid keeps its columns.
"""

from __future__ import annotations

import re

_STEERING = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but for the tab and the line break
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # turn the direction of writing
    "\u2028\u2029"  # other line breaks
    "\ud800-\udfff"  # halves of a pair: no encoding takes them
    "]"
)


def visible(text: str) -> str:
    r"""Return the text with its steering characters escaped as in Python (`\x1b`)."""
    return _STEERING.sub(lambda m: m.group().encode("unicode_escape").decode(), text)


def on_one_line(text: str, width: int) -> str:
    r"""Return the text on one line of at most `width` columns, `\n` for a break."""
    line = visible(text).replace("\n", "\\n").replace("\t", "\\t")
    return line if len(line) <= width else line[: width - 3] + "..."
