"""Sequences of many small things, each kept in one piece and made when it is asked for.

A list of words takes eight times the memory of their letters, and the boards of ARC
seven times that of their JSON.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, overload

import msgspec


class Words(Sequence[str]):
    """Words that never change."""

    def __init__(self, words: Sequence[str]) -> None:
        self._text = "".join(words)
        self._bounds = array("I", accumulate(map(len, words), initial=0))

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        found = range(len(self))[place]
        if isinstance(found, range):
            return [self[number] for number in found]
        return self._text[self._bounds[found] : self._bounds[found + 1]]


class JsonRows(Sequence[Any]):
    """Values that are read from their JSON, anew each time."""

    def __init__(self, rows: Iterable[bytes]) -> None:
        self._rows = list(rows)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self._read(row) for row in self._rows[place]]
        return self._read(self._rows[place])

    def _read(self, row: bytes) -> Any:
        return msgspec.json.decode(row)
