"""The graph of words of word_ladder: its neighbours, and their order."""

import random
import string
from types import SimpleNamespace

import pytest

from rg_env.task_rules.faster import ladder


def test_words_share_the_graph_that_their_letters_give():
    rng = random.Random(6)
    words = {"".join(rng.choices("ABCDE", k=4)) for _ in range(300)}
    build = ladder.make_build_word_graph(None)
    first, second = (
        SimpleNamespace(word_sets={4: words}, word_graphs={}) for _ in range(2)
    )
    graph = build(first, 4)
    assert build(second, 4) is graph is first.word_graphs[4]
    assert list(graph) == list(words)
    for word, near in graph.items():
        tried = set()
        for place in range(4):
            for letter in string.ascii_uppercase:
                other = word[:place] + letter + word[place + 1 :]
                if other != word and other in words:
                    tried.add(other)
        # In this order the ladders are searched.
        assert list(near) == list(tried)


@pytest.mark.parametrize("words", [{"C-T"}, {"CAT", "COATS"}, {"cat"}, {"ÄST"}])
def test_other_words_than_of_plain_letters_are_left_to_the_library(words):
    build = ladder.make_build_word_graph(lambda dataset, length: "its own")
    assert build(SimpleNamespace(word_sets={3: words}, word_graphs={}), 3) == "its own"
