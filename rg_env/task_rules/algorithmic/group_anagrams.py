"""group_anagrams: groups of words, and lists of them in palindrome_partitioning."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from rg_env.task_rules.faster_functions import JsonLines, begin_dataset
from rg_env.task_rules.reading.grids import read_any_rows
from rg_env.task_rules.rules import Entry, FasterFunction, OtherScore, TaskRules

_WORD = re.compile(r"[A-Za-z]+")
_MARKS = re.compile(
    "^[ \t]*(?:[-*\u2022][ \t]+|(?:group[ \t]+)?[0-9]{1,4}[.):][ \t]+)",
    re.MULTILINE | re.IGNORECASE,
)


def lists_of_words(answer: str, entry: Entry) -> str:
    """Write groups of words as JSON."""
    rows = read_any_rows(_MARKS.sub("", answer), _WORD)
    return answer if rows is None else json.dumps(rows)


class _Group(msgspec.Struct):
    words: msgspec.Raw


def _make_init(own: Any) -> Callable[..., None]:
    """Return GroupAnagramsDataset's `__init__`; the library's parses 2 MB a level."""
    library = own.__globals__

    @functools.cache
    def groups() -> JsonLines:
        path = library["get_data_file_path"]("anagrams.jsonl")
        decode = msgspec.json.Decoder(_Group).decode
        lines = path.read_bytes().splitlines()
        return JsonLines(bytes(decode(line).words) for line in lines)

    def init(dataset: Any, config: Any) -> None:
        begin_dataset(library, dataset, config)
        dataset.anagrams = groups()

    return init


BARE_LISTS = OtherScore("the right lists without the brackets around them", "nothing")

RULES = TaskRules(
    "group_anagrams",
    notation=lists_of_words,
    faster=(
        FasterFunction(
            "reasoning_gym.algorithmic.group_anagrams",
            "GroupAnagramsDataset.__init__",
            "63cdcae81b4d8e91",
            _make_init,
        ),
    ),
    other_scores=(BARE_LISTS,),
)
