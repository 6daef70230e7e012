"""word_ladder: which words differ in one letter.

The library tries 26 letters in each place of each word, for each level again.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

Graph = dict[str, set[str]]


@functools.lru_cache(maxsize=8)
def _graph(words: tuple[str, ...]) -> Graph:
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


def _are_plain(words: Iterable[str], length: int) -> bool:
    """Say whether trying 26 letters in each place finds all that differ in one."""
    letters = set("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return all(len(word) == length and letters.issuperset(word) for word in words)


def make_build_word_graph(own: Any) -> Callable[[Any, int], Graph]:
    """Return `_build_word_graph`, whose datasets share graphs, to which none writes."""

    def build_word_graph(dataset: Any, word_length: int) -> Graph:
        words = dataset.word_sets[word_length]
        if word_length in dataset.word_graphs or not _are_plain(words, word_length):
            graph: Graph = own(dataset, word_length)
        else:
            graph = dataset.word_graphs[word_length] = _graph(tuple(words))
        return graph

    return build_word_graph
