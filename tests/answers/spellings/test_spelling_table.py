"""What every spelling keeps to, whichever task it is for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rg_env.answers.spellings.spelling_table import SPELLINGS
from rg_env.tasks import library

SEEDS = range(6)


def _entries(task):
    for seed in SEEDS:
        try:
            yield library.make_entry(task, {}, seed)
        except library.UnusableEntry:
            continue


@pytest.mark.parametrize("task", sorted(SPELLINGS))
def test_the_right_answer_is_spelled_as_it_is(task):
    for entry in _entries(task):
        gold = entry["answer"]
        if isinstance(gold, str):
            assert SPELLINGS[task](gold, entry) == gold


@pytest.mark.parametrize("task", sorted(SPELLINGS))
@settings(max_examples=30, deadline=None)
@given(text=st.text(max_size=200))
def test_any_text_is_spelled_without_an_error(task, text):
    entry = library.make_entry(task, {}, 1)
    assert isinstance(SPELLINGS[task](text, entry), str)
