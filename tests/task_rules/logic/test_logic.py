"""Conclusions that follow from categorical statements."""

import itertools

import pytest

from rg_env.task_rules.logic.puzzles import follows
from tools.gold_solvers import SOLVERS

# -- syllogisms ------------------------------------------------------------------------


FORMS = ("All {} are {}", "No {} are {}", "Some {} are {}", "Some {} are not {}")


def test_a_conclusion_follows_if_it_holds_wherever_its_premises_hold():
    holds_in_all = SOLVERS["syllogism"]
    for one, two, end, to in itertools.product(FORMS, FORMS, FORMS, ("bc", "cb")):
        premises = [one.format("a", "b"), two.format(*to)]
        conclusion = end.format("c", "a")
        question = "\n".join([*premises, conclusion])
        verdicts = {follows(premises, conclusion, exist) for exist in (False, True)}
        assert holds_in_all(question, "Yes") == (verdicts == {True})
        assert holds_in_all(question, "No") == (verdicts == {False})


@pytest.mark.parametrize(
    ("premises", "conclusion", "is_valid"),
    [
        (["∃x ∈ a: x ∈ b", "∀x ∈ c: x ∉ b"], "∃x ∈ a: x ∉ c", True),
        (["∃x ∈ a: x ∉ b", "∀x ∈ b: x ∈ c"], "∃x ∈ a: x ∈ c", False),
    ],
)
def test_a_formal_conclusion_follows_like_one_in_words(premises, conclusion, is_valid):
    assert follows(premises, conclusion, True) == is_valid


def test_another_kind_of_statement_raises():
    with pytest.raises(ValueError, match="not a categorical statement"):
        follows(["Most a are b"], "All a are b", True)
