"""Rules of the algorithmic tasks about words and sentences."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rg_env.task_rules.faster_functions import JsonLines, init_that
from rg_env.task_rules.one_rule import one_answer
from rg_env.task_rules.reading.lists import WORD, list_of
from rg_env.task_rules.reading.values import as_json, read_list
from rg_env.task_rules.reading.words import in_any_case, of_short_text
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

# -- caesar_cipher ---------------------------------------------------------------------

_PUNCTUATION = re.compile(r"[.,;:!?]+(?=\s|$)")


def _without_punctuation(answer: str, entry: Entry) -> str:
    """Take off the punctuation, of which the question's text has none."""
    return _PUNCTUATION.sub("", answer)


def _letters_and_spaces(answer: str, entry: Entry) -> str:
    return in_any_case(_without_punctuation(answer, entry), entry)


CAESAR_CIPHER = TaskRules(
    "caesar_cipher",
    notation=_letters_and_spaces,
    item_checks=(
        ItemCheck(
            "text has a letter such as \u00cb, which is shifted as if it were another",
            lambda entry: not entry["answer"].isascii(),
        ),
    ),
    level_repair=LevelRepair(
        {level: {"max_rotation": 25} for level in (2, 3)},
        "levels 2 and 3 ask for rotations up to 50, and an alphabet has 25",
    ),
)


# -- group_anagrams --------------------------------------------------------------------


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


GROUP_ANAGRAMS = TaskRules(
    "group_anagrams",
    notation=as_json,
    faster=(
        FasterFunction(
            "reasoning_gym.algorithmic.group_anagrams",
            "GroupAnagramsDataset.__init__",
            "63cdcae81b4d8e91",
            init_that(_fill),
        ),
    ),
)


# -- letter_jumble ---------------------------------------------------------------------


def _sentence(answer: str, entry: Entry) -> str:
    """Take off punctuation, and the capital with which any sentence may begin."""
    gold = entry.get("answer")
    text = _without_punctuation(answer, entry)
    is_gold = isinstance(gold, str) and text[:1].lower() + text[1:] == gold
    return str(gold) if is_gold else text


LETTER_JUMBLE = TaskRules(
    "letter_jumble",
    notation=_sentence,
    fix=one_answer(any_case=False),
)


# -- sentence_reordering ---------------------------------------------------------------

_QUOTES = "\"'\u201c\u201d\u2018\u2019"
_BEFORE = rf"[{_QUOTES}(\[$*_`\u2022\u2014-]+"
_BEHIND = rf"[{_QUOTES})\]*_`.,;:!?\u2122\u2014-]+"
_AROUND_WORDS = re.compile(rf"(?<!\S){_BEFORE}|{_BEHIND}(?!\S)")
"""Signs around words that say nothing of their order; any other may deny it."""


def _lower_words(text: str) -> list[str]:
    return _AROUND_WORDS.sub("", text.replace("\u2019", "'")).split()


def _as_sentence(answer: str, entry: Entry) -> str:
    """Write a list of words as one sentence, and its words as the question does.

    What is asked for is their order: a period or a quote that is not copied changes
    nothing of it.
    """
    listed = read_list(answer)
    sentence = answer if listed is None else " ".join(listed)
    gold = entry.get("answer")
    if (
        isinstance(gold, str)
        and _lower_words(gold)
        and _lower_words(sentence) == _lower_words(gold)
    ):
        return gold
    return sentence


SENTENCE_REORDERING = TaskRules(
    "sentence_reordering",
    notation=_as_sentence,
    fix=one_answer(),
)


# -- spell_backward --------------------------------------------------------------------

_FROM_TO = re.compile(r"(\w+) ?(?:[-=]>|\u2192) ?(\S+)")
_SPELLED_OUT = re.compile(r"\w(?:([- ,.]| - |, )\w(?:\1\w)*)")


def _as_word(answer: str, entry: Entry) -> str:
    """Write a word alone: `sun -> nus`, as the question shows it, and `n-u-s`."""
    match = _FROM_TO.fullmatch(answer)
    word = entry.get("metadata", {}).get("word", "")
    if match is not None and match[1].lower() == str(word).lower():
        answer = match[2]
    match = _SPELLED_OUT.fullmatch(answer)
    return answer if match is None else answer.replace(match[1], "")


SPELL_BACKWARD = TaskRules(
    "spell_backward",
    notation=of_short_text(_as_word),
    fix=one_answer(),
)


# -- word_ladder -----------------------------------------------------------------------


def _ladder(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score half of what the library gives a ladder with steps that are no words."""
    value = library(answer)
    return value if value == 1.0 else value / 2


@functools.lru_cache(maxsize=8)
def _graph(words: tuple[str, ...]) -> dict[str, set[str]]:
    """Return the neighbours of each word.

    Those of a word are added in the library's order, the places from left to right and
    the letters of each from A to Z: the order of a set depends on it, and the ladder
    that is found on the order of the set.
    """
    alike = defaultdict(list)
    for word in sorted(words):
        for place in range(len(word)):
            alike[place, word[:place], word[place + 1 :]].append(word)
    return {
        word: {
            other
            for place in range(len(word))
            for other in alike[place, word[:place], word[place + 1 :]]
            if other != word
        }
        for word in words
    }


def _make_build_word_graph(own: Any) -> Callable[[Any, int], Any]:
    """Return WordLadderDataset's `_build_word_graph`, whose graphs all levels share.

    The library tries 26 letters in each place of each word, for each level again.
    """

    def build(dataset: Any, length: int) -> Any:
        words = dataset.word_sets[length]
        if length in dataset.word_graphs or not re.fullmatch("[A-Z]*", "".join(words)):
            return own(dataset, length)
        graph = dataset.word_graphs[length] = _graph(tuple(words))
        return graph

    return build


WORD_LADDER = TaskRules(
    "word_ladder",
    notation=list_of(WORD, ",".join),
    fix=ScorerFix(
        _ladder, "Gives 0.37 for changing one letter after the other, words or not."
    ),
    faster=(
        FasterFunction(
            "reasoning_gym.algorithmic.word_ladder",
            "WordLadderDataset._build_word_graph",
            "d644635acd2f5326",
            _make_build_word_graph,
        ),
    ),
)


# -- word_sorting ----------------------------------------------------------------------


WORD_SORTING = TaskRules(
    "word_sorting",
    notation=list_of(WORD, ", ".join),
    fix=one_answer(any_case=False),
)
