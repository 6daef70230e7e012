"""Scoring: both formats, one number in [0, 1], one outcome."""

import math

import pytest

from rg_env.reward.score import (
    MAX_WRONG_VALUE,
    Score,
    as_unit,
    outcome_of,
    score_answer,
    score_both_formats,
    tagged,
)

ENTRY = {"question": "2 + 3?", "answer": "5", "metadata": {}}


def returns(value):
    return lambda answer, entry: value


def table(values):
    """A scorer that looks up the exact text it is given."""
    return lambda answer, entry: values.get(answer, 0.0)


def fails(answer, entry):
    raise ZeroDivisionError(answer)


# -- the number ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "number"),
    [
        ([1, True, 1.5], 1.0),
        ([0.25, "0.25"], 0.25),
        ([0, -0.5, math.nan, math.inf, -math.inf, 10**400], 0.0),
        ([None, "right", [1.0], {}, 1j], 0.0),
    ],
)
def test_a_score_is_a_finite_number_of_the_unit_interval(values, number):
    assert {as_unit(value) for value in values} == {number}


# -- bare and tagged -------------------------------------------------------------------


NO_GOLD = {**ENTRY, "answer": None}
FROM_OUTSIDE = {"question": "2 + 3?"}
FORMATS = {
    "the bare answer is scored": ("4", {"4": 0.5}, 0.5),
    "tags count for a scorer that expects them": ("5", {tagged("5"): 1.0}, 1.0),
    "tags never lift a wrong answer where the right one needs none": (
        "4",
        {"5": 1.0, tagged("5"): 0.4, "4": 0.1, tagged("4"): 0.9},
        0.1,
    ),
    "tags never lower a score": ("5", {"5": 0.8, tagged("5"): 0.2}, 0.8),
}


@pytest.mark.parametrize(("answer", "scores", "value"), FORMATS.values(), ids=FORMATS)
def test_the_higher_score_of_both_formats_counts(answer, scores, value):
    assert score_both_formats(answer, ENTRY, table(scores)).value == value


@pytest.mark.parametrize(("entry", "value"), [(NO_GOLD, 0.0), (FROM_OUTSIDE, 1.0)])
def test_without_a_reference_tags_count_only_for_entries_from_outside(entry, value):
    assert score_both_formats("4", entry, table({tagged("4"): 1.0})).value == value


def test_a_scorer_that_cannot_read_tags_keeps_the_bare_score():
    def scorer(answer, entry):
        return 0.5 if answer == "4" else fails(answer, entry)

    assert score_both_formats("4", ENTRY, scorer).value == 0.5


def test_a_right_answer_is_scored_once():
    scored = []

    def scorer(answer, entry):
        scored.append(answer)
        return 1.0

    score_both_formats("5", ENTRY, scorer)
    assert scored == ["5"]


# -- the outcome -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "outcome"),
    [(1.0, "right"), (0.99, "partial"), (MAX_WRONG_VALUE, "wrong"), (0.0, "wrong")],
)
def test_an_outcome_names_the_score(value, outcome):
    assert outcome_of(value) == outcome
    assert score_answer("5", ENTRY, returns(value)) == Score(value, outcome, "5")


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
def test_an_empty_answer_is_zero_and_is_not_scored(gold):
    score = score_answer("", {**ENTRY, "answer": gold}, returns(0.05))
    assert score == Score(0.0, "empty_answer", "")


def test_an_empty_answer_is_right_where_the_gold_answer_is_empty():
    assert score_answer("", {**ENTRY, "answer": ""}, fails) == Score(1.0, "right", "")
