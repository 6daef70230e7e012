"""group_anagrams: groups of words, and lists of them in palindrome_partitioning."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from rg_env.task_rules.faster_functions import JsonLines, init_that
from rg_env.task_rules.reading.grids import read_any_rows
from rg_env.task_rules.rules import Entry, FasterFunction, TaskRules

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


@functools.cache
def anagrams(path: Path) -> JsonLines:
    """Return the groups of words in the library's file, of 2 MB."""
    decode = msgspec.json.Decoder(_Group).decode
    return JsonLines(
        bytes(decode(line).words) for line in path.read_bytes().splitlines()
    )


def _fill(library: Mapping[str, Any], dataset: Any, config: Any) -> None:
    dataset.anagrams = anagrams(library["get_data_file_path"]("anagrams.jsonl"))


RULES = TaskRules(
    "group_anagrams",
    notation=lists_of_words,
    faster=(
        FasterFunction(
            "reasoning_gym.algorithmic.group_anagrams",
            "GroupAnagramsDataset.__init__",
            "63cdcae81b4d8e91",
            init_that(_fill),
        ),
    ),
)
