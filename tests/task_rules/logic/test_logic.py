"""What follows from statements and clues, and what answers to riddles are paid."""

import itertools

import pytest

from rg_env.task_rules.logic.puzzles import follows
from tools.gold_solvers import SOLVERS

# -- syllogisms ------------------------------------------------------------------------


FORMS = ("All {} are {}", "No {} are {}", "Some {} are {}", "Some {} are not {}")


def test_a_conclusion_follows_if_it_holds_in_all_worlds_of_its_premises():
    holds_in_all = SOLVERS["syllogism"]
    for one, two, end, to in itertools.product(FORMS, FORMS, FORMS, ("bc", "cb")):
        premises = [one.format("a", "b"), two.format(*to)]
        conclusion = end.format("c", "a")
        question = "\n".join([*premises, conclusion])
        readings = {follows(premises, conclusion, each) for each in (False, True)}
        assert holds_in_all(question, "Yes") == (readings == {True})
        assert holds_in_all(question, "No") == (readings == {False})


@pytest.mark.parametrize(
    ("premises", "conclusion", "is_valid"),
    [
        (["∃x ∈ a: x ∈ b", "∀x ∈ c: x ∉ b"], "∃x ∈ a: x ∉ c", True),
        (["∃x ∈ a: x ∉ b", "∀x ∈ b: x ∈ c"], "∃x ∈ a: x ∈ c", False),
    ],
)
def test_a_formal_conclusion_follows_as_one_in_words(premises, conclusion, is_valid):
    assert follows(premises, conclusion, True) == is_valid


def test_another_statement_is_refused():
    with pytest.raises(ValueError, match="no categorical statement"):
        follows(["Most a are b"], "All a are b", True)
