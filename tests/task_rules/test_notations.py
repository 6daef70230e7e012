"""What every notation keeps to, whichever task it is for."""

import functools
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.table import TABLE, rules_of, solution
from rg_env.tasks import datasets

NOTATIONS = sorted(task for task, rules in TABLE.items() if rules.notation)
ENTRIES = 6
LONG = 20_000

PARTS = st.sampled_from(
    [
        *("A+1", "UP", "U", "A", "R'", "A=1", "3", "-4.5"),
        *("Move disk 1 from Peg 1 to Peg 2", "cat", "Q", "_", "[", "]", "(", ")", "{"),
        *("}", "|", "---", "'", '"', "`", "**", ",", ";", ":", "->", "\u2192", "\n"),
        *(" ", ".", "1. ", "- ", "or", "not", "Moves:", "fill A", "pour A->B"),
        *("w,A1,B3", "True", "\u274c", "\\to", "\\text{", "Row 1:"),
    ]
)
"""What answers are made of."""


@functools.cache
def _entries(task):
    asked = datasets.usable_entries(task, {}, itertools.count())
    return list(itertools.islice(asked, ENTRIES))


@pytest.mark.slow
@pytest.mark.parametrize("task", NOTATIONS)
def test_the_right_answer_is_spelled_as_it_is(task):
    for entry in _entries(task):
        gold = solution(task, entry) or entry["answer"]
        if isinstance(gold, str):
            assert rules_of(task).notation(gold, entry) == gold


@pytest.mark.slow
@pytest.mark.parametrize("task", NOTATIONS)
@settings(max_examples=30, deadline=None)
@given(text=st.text(max_size=200))
def test_any_text_is_spelled_without_an_error(task, text):
    entry = _entries(task)[0]
    assert isinstance(rules_of(task).notation(text, entry), str)


@pytest.mark.slow
@pytest.mark.parametrize("task", NOTATIONS)
@settings(max_examples=60, deadline=None)
@given(parts=st.lists(PARTS, max_size=12))
def test_what_is_spelled_is_spelled_as_it_is(task, parts):
    entry = _entries(task)[0]
    once = rules_of(task).notation(" ".join(parts), entry)
    assert rules_of(task).notation(once, entry) == once


def test_an_answer_that_is_too_long_is_not_spelled():
    [entry, *_] = _entries("rush_hour")
    rules = ScoringRules(max_answer_chars=10)
    plain = rules.normalizer("rush_hour", entry)
    assert plain("A+1, B+1") == "A+1 B+1"
    assert plain("A+1, B+1, C+1") == "A+1, B+1, C+1"


LONG_PARTS = ["A", "7", "1. ", "- ", "-", "[", "(", "'", "**", "\\text{", "A=1,", "a\n"]
LONG_PARTS += [
    *(" ", ",", "|", "then ", "0 machine ", "the ", "{0:", "\\\\ ", "\\{}", "1 2\n"),
]


@pytest.mark.slow
@pytest.mark.parametrize("task", NOTATIONS)
@pytest.mark.parametrize("end", ["", "?"])
def test_no_text_keeps_it_long(task, end):
    """It would take minutes if a spelling were more than linear."""
    entry = _entries(task)[0]
    for part in LONG_PARTS:
        text = (part * LONG)[:LONG] + end
        assert isinstance(rules_of(task).notation(text, entry), str)


AWKWARD = (
    *("x" + " " * LONG + "x", " " * LONG, "\n" * LONG, " " * 399 + "1", "9" * LONG),
    *("1 " * (LONG // 2), "1,111" * (LONG // 5), "\\frac " + " " * LONG, "(" * LONG),
    *("~" * LONG, "a = 1, " * (LONG // 7), "2^2 * " * (LONG // 6)),
    *("Yes, " + "it " * (LONG // 3), "-" * LONG + ">", "constant of " * 30),
    *("is a " * (LONG // 5), "P(" * (LONG // 2)),
)


@pytest.mark.slow
@pytest.mark.parametrize("task", NOTATIONS)
def test_no_run_of_signs_keeps_it_long(task):
    entry = _entries(task)[0]
    for text in AWKWARD:
        assert isinstance(rules_of(task).notation(text, entry), str)
