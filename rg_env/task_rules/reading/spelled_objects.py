"""Answers of JSON and answers that name each thing's value."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rg_env.task_rules.reading.grids import read_any_rows
from rg_env.task_rules.reading.notation import Spelling
from rg_env.task_rules.reading.written_lists import plain, read_sequence
from rg_env.task_rules.reading.written_values import read_value

_LETTER_AND_DIGIT = re.compile(
    r"([A-Z])\s*(?:=|:|\u2192|\bis\b)\s*([0-9])(?!\w|\.[0-9])"
)
_VERTEX_AND_COLOR = re.compile(
    r"(?:(?:vertex|node)\s+)?([0-9]{1,6})\s*(?:=|:|\u2192|\bis\b)"
    r"\s*(?:colou?r\s+)?([0-9]{1,6})\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]+")
_MARKS = re.compile(
    "^[ \t]*(?:[-*\u2022][ \t]+|(?:group[ \t]+)?[0-9]{1,4}[.):][ \t]+)",
    re.MULTILINE | re.IGNORECASE,
)


def read_pairs(
    text: str, pair: re.Pattern[str], *, numbered: bool
) -> dict[str, str] | None:
    """Read what each name is said to be, as JSON or as pairs.

    Returns:
        None where anything else stands in the text or a name stands twice.
    """
    try:
        value = read_value(text)
    except ValueError:
        value = None
    if isinstance(value, dict):
        written = [pair.fullmatch(f"{name}={v}") for name, v in value.items()]
        if not all(isinstance(v, (int, str)) for v in value.values()):
            return None
        found = [match for match in written if match is not None]
        if len(found) < len(written):
            return None
    else:
        found = read_sequence(plain(text).strip("{}"), pair, numbered=numbered) or []
    pairs = {match[1]: match[2] for match in found}
    return pairs if found and len(pairs) == len(found) else None


def digits_of_letters(answer: str, entry: Mapping[str, Any]) -> str:
    """Write what each letter stands for as `A=1,B=2`."""
    pairs = read_pairs(answer, _LETTER_AND_DIGIT, numbered=True)
    if pairs is None:
        return answer
    return ",".join(f"{letter}={digit}" for letter, digit in pairs.items())


def colors_of_vertices(answer: str, entry: Mapping[str, Any]) -> str:
    """Write the color of each vertex as JSON."""
    pairs = read_pairs(answer, _VERTEX_AND_COLOR, numbered=False)
    if pairs is None:
        return answer
    return json.dumps({vertex: int(color) for vertex, color in pairs.items()})


def lists_of_words(answer: str, entry: Mapping[str, Any]) -> str:
    """Write groups of words as JSON."""
    rows = read_any_rows(_MARKS.sub("", answer), _WORD)
    return answer if rows is None else json.dumps(rows)


SPELLINGS: Mapping[str, Spelling] = {
    "cryptarithm": digits_of_letters,
    "graph_color": colors_of_vertices,
    "group_anagrams": lists_of_words,
    "palindrome_partitioning": lists_of_words,
}
"""Task to its spelling."""
