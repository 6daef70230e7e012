"""word_ladder: words that differ by one letter each."""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from rg_env.task_rules.reading.lists import plain, read_sequence
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

_BETWEEN_RUNGS = re.compile("[\\s,;>\u2192\"'\u201c\u201d\u2018\u2019\u2010-\u2015-]*")


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


def _with_commas(answer: str, entry: Entry) -> str:
    """Write a ladder of words with commas; each of them is as long as the last one."""
    length = len(entry["metadata"]["end_word"])
    rung = re.compile(rf"[A-Za-z]{{{length}}}(?![A-Za-z])")
    rungs = read_sequence(plain(answer), rung, _BETWEEN_RUNGS)
    return answer if rungs is None else ",".join(word[0].upper() for word in rungs)


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
    notation=_with_commas,
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
