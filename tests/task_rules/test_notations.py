"""Properties of every notation."""

import functools
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rg_env.library import datasets
from rg_env.task_rules.table import TABLE, rules_of, solution

NOTATIONS = sorted(task for task, rules in TABLE.items() if rules.notation)
ENTRIES = 2
LONG = 20_000

SHORT = r"""
    A+1 UP U A R' A=1 3 -4.5 cat Q _ [ ] ( ) { } | --- ' " ` ** , ; : -> → . or not
    Moves: True \to \text{
"""
SPACED = [" ", "\n", "1. ", "- ", "Move disk 1 from Peg 1 to Peg 2"]
PARTS = st.sampled_from(SHORT.split() + SPACED)
"""Pieces of answers."""


@functools.cache
def _entries(task):
    asked = datasets.usable_entries(task, {}, itertools.count())
    return list(itertools.islice(asked, ENTRIES))


@pytest.mark.slow
@pytest.mark.parametrize("task", NOTATIONS)
def test_the_right_answer_stays_unchanged(task):
    for entry in _entries(task):
        gold = solution(task, entry) or entry["answer"]
        if isinstance(gold, str):
            assert rules_of(task).notation(gold, entry) == gold


@pytest.mark.slow
@pytest.mark.parametrize("task", NOTATIONS)
@settings(max_examples=25)
@given(text=st.text(max_size=200) | st.lists(PARTS, max_size=12).map(" ".join))
def test_a_canonical_form_stays_unchanged(task, text):
    entry = _entries(task)[0]
    once = rules_of(task).notation(text, entry)
    assert rules_of(task).notation(once, entry) == once


REPEATED = r"""
    A 7 - [ ( ' ** \text{ A=1, , | {0: \\ \{} 9 1,111 ~ P( 1= 1+1=
"""
LONG_PARTS = [*REPEATED.split(), "1. ", "- ", "a\n", " ", "the ", "1 2\n", "\n"]
LONG_PARTS += ["\\\\ ", "2^2 * ", "is a "]
AWKWARD = (
    *(f"{part * LONG:.{LONG}}{end}" for part in LONG_PARTS for end in ("", "?")),
    *("x" + " " * LONG + "x", " " * 399 + "1", "\\frac " + " " * LONG),
    *("-" * LONG + ">", "constant of " * 30),
)


@pytest.mark.slow
@pytest.mark.parametrize("task", NOTATIONS)
def test_no_text_takes_long(task):
    """A quadratic notation would take minutes."""
    entry = _entries(task)[0]
    for text in AWKWARD:
        assert isinstance(rules_of(task).notation(text, entry), str)
