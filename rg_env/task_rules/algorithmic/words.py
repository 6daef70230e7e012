"""Rules of the algorithmic tasks about words and sentences."""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from rg_env.task_rules.faster_functions import JsonLines, init_that
from rg_env.task_rules.reading.lists import WORD, less_surplus, list_of
from rg_env.task_rules.reading.values import as_json
from rg_env.task_rules.reading.words import of_short_text, with_its_first_letter
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
    partial_credit,
)

# -- caesar_cipher ---------------------------------------------------------------------

CAESAR_CIPHER = TaskRules(
    "caesar_cipher",
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


def _words(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score word by word, surplus words and lost capitals included.

    It may begin with a capital, as any sentence. A title's capitals on every word cost
    one word: the words are right, and only how they are written is not. Words that the
    question shows unchanged score nothing.
    """
    words, gold = answer.split(), entry["answer"].split()
    if words[:1] == [gold[0][:1].upper() + gold[0][1:]]:
        words[0] = gold[0]
    if words == gold:
        return 1.0
    surplus = max(0, len(words) - len(gold))
    # The question has the capitals kept, and the library passes over them.
    other_case = any(
        word != right and word.lower() == right.lower()
        for word, right in zip(words, gold, strict=False)
    )
    share = less_surplus(library(answer), surplus + other_case, len(gold))
    given = entry["metadata"].get("scrambled_words", ())
    unchanged = sum(a == b for a, b in zip(given, gold, strict=False))
    return partial_credit(share, unchanged / len(gold))


LETTER_JUMBLE = TaskRules(
    "letter_jumble",
    notation=with_its_first_letter,
    fix=ScorerFix(
        scorer_sha256="ff88ce5e01c6806cd1063955209938441ca99937007cafd3ba8659be7001fa98",
        fault="Ignores capitals and words after the last right one; gives 0.9 if one"
        " word is wrong, and credit for words that the question shows unchanged.",
        score=_words,
    ),
)


# -- sentence_reordering ---------------------------------------------------------------


def _in_place(words: Sequence[str], gold: Sequence[str]) -> float:
    pairs = zip(words, gold, strict=False)
    return sum(a.lower() == b.lower() for a, b in pairs) / len(gold)


def _order(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score the right order, and another one by its words in place.

    What the question's own order has in place scores nothing, nor do the two words that
    their capital and their full stop put first and last.
    """
    value, gold = library(answer), entry["answer"].split()
    if value == 1.0 or len(answer.split()) != len(gold):
        return value
    given = entry["question"].partition(": ")[2].split()
    trivial = max(_in_place(given, gold), 2 / len(gold))
    return partial_credit(value, trivial)


SENTENCE_REORDERING = TaskRules(
    "sentence_reordering",
    fix=ScorerFix(
        scorer_sha256="5f10e9fc7c8a5273119e610a1e6f08d3a187c1a1bdf0d1840ad598472289910b",
        fault="Gives 0.9 if two words are in the wrong order, and credit for the first"
        " and the last word, which the capital letter and the full stop show.",
        score=_order,
    ),
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


def _letters(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score letter by letter, surplus letters included.

    The word as it stands has its middle right and every pair that is the same from both
    ends, 0.38 of words of three letters; so half of the letters score 0, and so does
    the word itself.
    """
    gold, word = entry["answer"].lower(), entry["metadata"]["word"].lower()
    if answer.lower() == gold:
        return library(answer)
    if not all(sign.isalnum() or sign in gold for sign in answer):
        return 0.0
    surplus = max(0, len(answer) - len(gold))
    share = less_surplus(library(answer), surplus, len(gold))
    same = sum(a == b for a, b in zip(word, gold, strict=False)) / len(gold)
    return partial_credit(share, max(0.5, same))


SPELL_BACKWARD = TaskRules(
    "spell_backward",
    notation=of_short_text(_as_word),
    fix=ScorerFix(
        scorer_sha256="1e862479b7149349ccb68e64a83431f9268367addf40bcffaeddb4d6d37fa62e",
        fault="Ignores letters after the last right one; the sum can exceed 1; gives"
        " 0.38 to an unchanged word of three letters, and 0.9 if one letter is wrong.",
        score=_letters,
    ),
)


# -- word_ladder -----------------------------------------------------------------------


def _letters_apart(word: str, other: str) -> int:
    return sum(a != b for a, b in zip(word, other, strict=True))


def _single_steps(words: list[str]) -> list[str]:
    """Return the words up to the first step that changes not exactly one letter."""
    for place, (word, step) in enumerate(pairwise(words), 1):
        if len(step) != len(word) or _letters_apart(word, step) != 1:
            return words[:place]
    return words


def _rungs(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score 1, or half of the share of letters brought into place.

    Steps count up to the first that is no word or changes not exactly one letter. Who
    begins elsewhere, gets no nearer or goes on behind the end has nothing.
    """
    value = library(answer)
    start, end = entry["metadata"]["start_word"], entry["metadata"]["end_word"]
    words = [word.strip() for word in answer.upper().split(",")]
    if value == 1.0 or words[0] != start:
        return value if value == 1.0 else 0.0
    steps = _single_steps(words)
    in_turn = (end[:n] + start[n:] for n in range(1, len(end) + 1))
    to_end = [word for word in dict.fromkeys(in_turn) if word != start]

    def by_way_of(place: int) -> float:
        """Return the score of the way to a step, back and one letter after another.

        That is halved for each word that the library does not know.
        """
        there = steps[: place + 1]
        return library(",".join([*there, *there[-2::-1], *to_end]))

    known = bisect_left(
        range(1, len(steps)), True, key=lambda place: by_way_of(place) < by_way_of(0)
    )
    apart = _letters_apart(steps[known], end)
    return max(0.0, 1 - apart / _letters_apart(start, end)) / 2 if apart else 0.0


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
        scorer_sha256="aad8610399afb5c1fb4d873c43102d996eca2fc663c37ca56831f552c67fde22",
        fault=(
            "Scores steps that are no words (0.37 for changing one letter after the"
            " other), but no right steps of an incomplete ladder."
        ),
        score=_rungs,
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


def _share_in_place(words: Sequence[str], gold: Sequence[str]) -> float:
    return sum(a == b for a, b in zip(words, gold, strict=False)) / len(gold)


def _sorted_words(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score words in their place, surplus ones and those of the question included."""
    gold = entry["metadata"]["sorted_words"]
    given = [word.strip() for word in re.split(r",\s*", answer) if word.strip()]
    if given == gold:
        return 1.0
    if any(len(word.split()) > 1 for word in given):
        return 0.0  # something is said beside the words
    surplus = max(0, len(given) - len(gold))
    share = less_surplus(_share_in_place(given, gold), surplus, len(gold))
    asked = entry["metadata"].get("transformed_words", ())
    return partial_credit(share, _share_in_place(asked, gold))


WORD_SORTING = TaskRules(
    "word_sorting",
    fix=ScorerFix(
        scorer_sha256="635fe0f126391fcfc53bf8b4108dbb2c4811abf0054dc224390d52d1718c7a73",
        fault="Ignores words after the last right one; gives 0.2 to a copy of the"
        " question, and 0.9 if one word is wrong.",
        score=_sorted_words,
    ),
)
