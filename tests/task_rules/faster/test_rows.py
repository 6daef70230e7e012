"""Sequences of many small things behave as the lists that they were made of."""

import json
import random
import tracemalloc

import pytest

from rg_env.task_rules.faster.rows import JsonRows, Words


def to_json(value):
    return json.dumps(value).encode()


WORDS = ["ant", "", "Ästchen", "🐜🐜", "bee"]


@pytest.mark.parametrize("rows", [Words(WORDS), JsonRows(map(to_json, WORDS))])
def test_rows_are_used_as_the_list_that_they_were_made_of(rows):
    assert list(rows) == WORDS and len(rows) == len(WORDS)
    assert [rows[place] for place in range(-5, 5)] == WORDS * 2
    assert rows[1:4] == WORDS[1:4] and rows[::-2] == WORDS[::-2] and rows[9:] == []
    assert "bee" in rows and "wasp" not in rows
    for draw in (random.Random.choice, random.Random.sample):
        more = (3,) if draw is random.Random.sample else ()
        drawn = (draw(random.Random(4), kept, *more) for kept in (rows, WORDS))
        assert next(drawn) == next(drawn)
    for place in (5, -6):
        with pytest.raises(IndexError):
            rows[place]


def test_words_take_a_quarter_of_the_memory_of_a_list():
    tracemalloc.start()
    words = [f"word{number}" for number in range(50_000)]
    of_list = tracemalloc.get_traced_memory()[0]
    rows = Words(words)
    of_rows = tracemalloc.get_traced_memory()[0] - of_list
    tracemalloc.stop()
    assert len(rows) == 50_000 and of_rows < of_list / 4
