"""An answer in its scorer's own form is what its spelling would have returned."""

import functools
import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rg_env.scoring.normalization import undressing
from rg_env.scoring.scoring_rules import MEANINGFUL
from rg_env.task_rules.solutions import solution
from rg_env.task_rules.spellings.own_forms import OWN_FORMS
from rg_env.task_rules.spellings.spelling_table import SPELLINGS
from rg_env.tasks import library

ENTRIES = 8


@functools.cache
def entries_of(task):
    return list(itertools.islice(library.usable_entries(task, {}, range(99)), ENTRIES))


@functools.cache
def solved(task):
    """Entries with a right answer in the form that the library writes it in."""
    found = [(entry, solution(task, entry)) for entry in entries_of(task)]
    return [(e, gold) for e, gold in found if gold and OWN_FORMS[task].fullmatch(gold)]


def read(task, entry, answer):
    """The answer after all that is done for one in no known form."""
    gold = entry["answer"] if isinstance(entry["answer"], str) else None
    bare = undressing(gold, MEANINGFUL.get(task, ""))(answer)
    return SPELLINGS[task](bare, entry)


@pytest.mark.parametrize("task", OWN_FORMS)
def test_right_answers_are_written_in_the_own_form_of_their_scorer(task):
    assert solved(task)


@pytest.mark.parametrize("task", OWN_FORMS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_an_answer_in_its_own_form_is_spelled_as_it_stands(task, data):
    form = re.compile(OWN_FORMS[task].pattern, re.ASCII)
    answer = data.draw(st.from_regex(form, fullmatch=True))
    entry, gold = data.draw(st.sampled_from(solved(task)))
    assert answer == gold or read(task, entry, answer) == answer


@pytest.mark.parametrize("task", OWN_FORMS)
def test_right_answers_to_other_items_are_spelled_as_they_stand(task):
    for (entry, _), (_, answer) in itertools.permutations(solved(task), 2):
        assert read(task, entry, answer) == answer
