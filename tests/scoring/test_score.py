"""Scoring: both formats, one number in [0, 1], one outcome."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.scoring.score import (
    WRONG_AT_MOST,
    Score,
    as_unit,
    compare_formats,
    outcome_of,
    score_answer,
    tagged,
)
from rg_env.tasks import library

ENTRY = {"question": "2 + 3?", "answer": "5", "metadata": {}}


def pays(value):
    return lambda answer, entry: value


def table(values):
    """A scorer that looks up the exact text it is given."""
    return lambda answer, entry: values.get(answer, 0.0)


def fails(answer, entry):
    raise ZeroDivisionError(answer)


# -- the number ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "number"),
    [(0, 0.0), (0.25, 0.25), (1, 1.0), (True, 1.0), (1.5, 1.0), (-0.5, 0.0)],
)
def test_a_score_is_clamped_to_the_unit_interval(value, number):
    assert as_unit(value) == number


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_what_is_not_finite_is_zero(value):
    assert as_unit(value) == 0.0


@pytest.mark.parametrize("value", [None, "right", [1.0], {}, 1j])
def test_what_is_no_number_is_zero(value):
    assert as_unit(value) == 0.0


@given(st.one_of(st.floats(), st.integers(), st.text(), st.none(), st.booleans()))
def test_whatever_a_scorer_returns_the_score_is_in_the_unit_interval(value):
    score = score_answer("5", ENTRY, pays(value))
    assert 0.0 <= score.value <= 1.0


# -- bare and tagged -------------------------------------------------------------------


def test_the_bare_answer_is_scored():
    assert compare_formats("4", ENTRY, table({"4": 0.5})).value == 0.5


def test_tags_count_for_a_scorer_that_expects_them():
    scorer = table({tagged("5"): 1.0})
    assert compare_formats("5", ENTRY, scorer).value == 1.0


def test_tags_never_lift_a_wrong_answer_where_the_right_one_needs_none():
    scorer = table({"5": 1.0, tagged("5"): 0.4, "4": 0.1, tagged("4"): 0.9})
    assert compare_formats("4", ENTRY, scorer).value == 0.1


def test_tags_never_lift_an_answer_to_an_entry_without_a_gold_answer():
    scorer = table({tagged("4"): 1.0})
    assert compare_formats("4", {**ENTRY, "answer": None}, scorer).value == 0.0


def test_tags_count_for_an_entry_from_outside_that_states_no_gold_answer():
    scorer = table({tagged("5"): 1.0})
    assert compare_formats("5", {"question": "2 + 3?"}, scorer).value == 1.0


def test_tags_never_lower_a_score():
    scorer = table({"5": 0.8, tagged("5"): 0.2})
    assert compare_formats("5", ENTRY, scorer).value == 0.8


def test_a_scorer_that_cannot_read_tags_keeps_the_bare_score():
    def scorer(answer, entry):
        return 0.5 if answer == "4" else fails(answer, entry)

    assert compare_formats("4", ENTRY, scorer).value == 0.5


def test_a_right_answer_is_asked_about_once():
    asked = []

    def scorer(answer, entry):
        asked.append(answer)
        return 1.0

    compare_formats("5", ENTRY, scorer)
    assert asked == ["5"]


@pytest.mark.parametrize("task", ["spell_backward", "figlet_font"])
def test_scorers_of_the_library_that_tags_deceive_are_not_deceived(task):
    entry = library.make_entry(task, {}, seed=1)
    scorer = library.scoring_dataset(task, {}).score_answer
    assert as_unit(scorer(tagged("zzz"), entry)) > as_unit(scorer("zzz", entry))
    assert score_answer("zzz", entry, scorer).value == as_unit(scorer("zzz", entry))


# -- the outcome -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "outcome"),
    [(1.0, "right"), (0.99, "partial"), (WRONG_AT_MOST, "wrong"), (0.0, "wrong")],
)
def test_an_outcome_names_the_score(value, outcome):
    assert outcome_of(value) == outcome
    assert score_answer("5", ENTRY, pays(value)) == Score(value, outcome, "5")


def test_an_exception_of_the_scorer_is_a_zero_that_says_so():
    assert score_answer("x", ENTRY, fails) == Score(0.0, "scorer_error", "x")


def test_a_scorer_that_recurses_without_end_is_a_zero_that_says_so():
    def recurse(answer, entry):
        return recurse(answer, entry)

    assert score_answer("x", ENTRY, recurse).outcome == "scorer_error"


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_the_end_of_the_process_is_no_score(ending):
    def scorer(answer, entry):
        raise ending

    with pytest.raises(ending):
        score_answer("5", ENTRY, scorer)


@pytest.mark.parametrize("gold", ["5", None])
def test_an_empty_answer_is_zero_and_the_scorer_is_not_asked(gold):
    score = score_answer("", {**ENTRY, "answer": gold}, pays(0.05))
    assert score == Score(0.0, "empty_answer", "")


def test_an_empty_answer_is_right_where_the_gold_answer_is_empty():
    assert score_answer("", {**ENTRY, "answer": ""}, fails) == Score(1.0, "right", "")
