"""Rules of the algorithmic tasks about words and sentences."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rg_env.task_rules.answer_matching import one_answer
from rg_env.task_rules.faster_functions import JsonLines, dataset_init
from rg_env.task_rules.reading.lists import WORD, list_notation
from rg_env.task_rules.reading.numbers import short_answers_only
from rg_env.task_rules.reading.values import as_json
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

# -- group_anagrams --------------------------------------------------------------------


class _Group(msgspec.Struct):
    words: msgspec.Raw


@functools.cache
def anagrams(path: Path) -> JsonLines:
    """Return the groups of words in the library's file of 2 MB."""
    decode = msgspec.json.Decoder(_Group).decode
    return JsonLines(
        bytes(decode(line).words) for line in path.read_bytes().splitlines()
    )


def _fill(library: Mapping[str, Any], dataset: Any, config: Any) -> None:
    dataset.anagrams = anagrams(library["get_data_file_path"]("anagrams.jsonl"))


GROUP_ANAGRAMS = TaskRules(
    "group_anagrams",
    notation=as_json,
    faster=(
        FasterFunction(
            module="reasoning_gym.algorithmic.group_anagrams",
            name="GroupAnagramsDataset.__init__",
            digest="63cdcae81b4d8e91",
            make=dataset_init(_fill),
        ),
    ),
)


# -- letter_jumble ---------------------------------------------------------------------


def _with_case_of_reference(answer: str, entry: Entry) -> str:
    """Write a capital first letter in the case of the reference."""
    first = (entry.get("answer") or "")[:1]
    return first + answer[1:] if answer[:1] == first.upper() else answer


LETTER_JUMBLE = TaskRules(
    "letter_jumble",
    notation=_with_case_of_reference,
    fix=one_answer(ignore_case=False),
)


# -- spell_backward --------------------------------------------------------------------

_FROM_TO = re.compile(r"(\w+) ?(?:[-=]>|\u2192) ?(\S+)")
_SPELLED_OUT = re.compile(r"\w(?:([- ,.]| - |, )\w(?:\1\w)*)")


def _as_word(answer: str, entry: Entry) -> str:
    """Write `nus` for `sun -> nus`, as in the question, and for `n-u-s`."""
    match = _FROM_TO.fullmatch(answer)
    word = entry.get("metadata", {}).get("word", "")
    if match is not None and match[1].lower() == str(word).lower():
        answer = match[2]
    match = _SPELLED_OUT.fullmatch(answer)
    return answer if match is None else answer.replace(match[1], "")


SPELL_BACKWARD = TaskRules(
    "spell_backward",
    notation=short_answers_only(_as_word),
    fix=one_answer(),
)


# -- word_ladder -----------------------------------------------------------------------


def _score_ladder(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Halve the library's score of a ladder that is not perfect."""
    value = library(answer)
    return value if value == 1.0 else value / 2


def _gapped(word: str) -> list[tuple[str, str]]:
    """Return the letters before and after a gap, for a gap at each letter."""
    return [(word[:index], word[index + 1 :]) for index in range(len(word))]


@functools.lru_cache(maxsize=8)
def _graph(words: tuple[str, ...]) -> dict[str, set[str]]:
    """Return the neighbours of each word.

    They are added in the library's order: gaps from left to right, letters from A to Z.
    The ladder that the library finds depends on the order of the set, which depends on
    the order of the insertions.
    """
    by_gap = defaultdict(list)
    for word in sorted(words):
        for gap in _gapped(word):
            by_gap[gap].append(word)
    return {
        word: {other for gap in _gapped(word) for other in by_gap[gap] if other != word}
        for word in words
    }


def _make_build_word_graph(original: Any) -> Callable[[Any, int], Any]:
    """Return a `_build_word_graph` of WordLadderDataset that all levels share.

    The library tries 26 letters at each index of each word, again for each level.
    """

    def build(dataset: Any, length: int) -> Any:
        words = dataset.word_sets[length]
        if length in dataset.word_graphs or not re.fullmatch("[A-Z]*", "".join(words)):
            return original(dataset, length)
        graph = dataset.word_graphs[length] = _graph(tuple(words))
        return graph

    return build


WORD_LADDER = TaskRules(
    "word_ladder",
    notation=list_notation(WORD, ",".join),
    fix=ScorerFix(
        _score_ladder,
        "Gives 0.37 for changing one letter after the other, words or not.",
    ),
    faster=(
        FasterFunction(
            module="reasoning_gym.algorithmic.word_ladder",
            name="WordLadderDataset._build_word_graph",
            digest="d644635acd2f5326",
            make=_make_build_word_graph,
        ),
    ),
)
