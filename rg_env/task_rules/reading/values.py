"""Parses values that are written as JSON or Python, and evaluates nothing.

If a question asks for JSON, language models also write Python: single quotes, `True`,
tuples, a comma behind the last element, numbers as keys. This parser accepts all of
these, and typographic quotes; round brackets count as square ones, so `(1]` is `[1]`.
Anything else (a set, a call, a comment, the same name twice in one object, a second
value) is an error.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Iterator
from typing import Any

from rg_env.task_rules.rules import Entry

# Deepest nesting; the reference answers of the library have at most 8.
MAX_DEPTH = 40

_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\\n]|\\.)*"|\u201c[^\u201d\\\n]*\u201d'
    r"|\u2018[^\u2019\\\n]*\u2019|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z]+)|(?P<sign>[\[\](){},:]))"
)
_NAMES = {"True": "true", "False": "false", "None": "null"}
_NAMES |= {name: name for name in _NAMES.values()}
_BRACKETS = {"(": "[", ")": "]"}
_INSIDE_QUOTES = re.compile(r"\\.|\"")


def _as_json_string(text: str) -> str:
    if text[0] == '"':
        return text
    written = {"\\'": "'", '"': r"\""}
    inside = _INSIDE_QUOTES.sub(lambda m: written.get(m[0], m[0]), text[1:-1])
    return f'"{inside}"'


def _json_pieces(text: str) -> Iterator[str]:
    """Yield the JSON text of each token."""
    end = 0
    while end < len(text):
        match = _TOKEN.match(text, end)
        if match is None:
            raise ValueError("an unexpected character")
        end = match.end()
        kind = str(match.lastgroup)
        piece = match[kind]
        if kind == "string":
            piece = _as_json_string(piece)
        elif kind == "name":
            if piece not in _NAMES:
                raise ValueError("an unknown word")
            piece = _NAMES[piece]
        yield _BRACKETS.get(piece, piece)


def _as_json(text: str) -> str:
    """Write a text as JSON, which need not be valid."""
    depth = 0
    pieces: list[str] = []
    for piece in _json_pieces(text.strip()):
        last = pieces[-1] if pieces else ""
        if piece in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError("nested too deeply")
        elif piece in "]}":
            depth -= 1
            if last == ",":
                pieces.pop()
        elif piece == ":" and last and last[0] in "-0123456789":
            pieces[-1] = f'"{last}"'
        pieces.append(piece)
    return " ".join(pieces)


def refuse_duplicate_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object, as `object_pairs_hook` of JSON; a name must not occur twice."""
    built = dict(pairs)
    if len(built) != len(pairs):
        raise ValueError("a name is given twice")
    return built


def read_value(text: str) -> Any:
    """Parse one value; raises ValueError for any other text.

    Example:
        >>> read_value("{'a': (1, True)}")
        {'a': [1, True]}
    """
    try:
        return json.loads(_as_json(text), object_pairs_hook=refuse_duplicate_names)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def as_json(answer: str, entry: Entry) -> str:
    """Write a value as JSON; return any other text unchanged."""
    try:
        return json.dumps(read_value(answer), ensure_ascii=False)
    except ValueError:
        return answer


def refuse_constant(name: str) -> str:
    """Refuse `NaN` and its like, as `parse_constant` of JSON."""
    raise ValueError(f"{name} is not a value of JSON")


def _read_as_written(text: str) -> Any:
    """Return a list with its numbers as they are written, None for any other text."""
    text = text.strip()
    if not text.startswith(("[", "(")):
        return None
    read = functools.partial(json.loads, parse_int=str, parse_float=str)
    with contextlib.suppress(ValueError, RecursionError):
        try:  # most lists are JSON already, which takes a tenth of the time
            return read(text, parse_constant=refuse_constant)
        except ValueError:
            return read(_as_json(text))
    return None


def read_list(text: str) -> list[str] | None:
    """Return the elements of a list of strings and numbers as they are written.

    It is None for any other text.
    """
    value: list[str] | None = _read_as_written(text)
    if value is None or not all(isinstance(v, str) for v in value):
        return None
    return value


def read_rows(text: str) -> list[list[str]] | None:
    """Return the elements of a list of lists as they are written; None if it is none.

    A list of strings and numbers is one row.
    """
    value = _read_as_written(text)
    if value is None:
        return None
    rows = value if any(isinstance(row, list) for row in value) else [value]
    for row in rows:
        if not isinstance(row, list) or not all(isinstance(c, str) for c in row):
            return None
    return rows
