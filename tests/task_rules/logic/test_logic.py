"""What follows from statements and clues, and what answers to riddles are paid."""

import importlib
import itertools
import random

import pytest

from rg_env.library import registry
from rg_env.task_rules.logic.puzzles import follows
from tools.gold_solvers import SOLVERS

# -- zebra_puzzles ---------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
def test_a_puzzle_has_one_solution_with_all_clues_and_several_with_none(known):
    registry.describe()
    room = "reasoning_gym.logic.contrib.logic_puzzle"
    generate = importlib.import_module(f"{room}.generate")
    rng = random.Random(1)
    kinds = [generate.Name, generate.Color]
    solution = generate.generate_solution_dict(rng, kinds, 3)
    puzzle = generate.Puzzle(
        rng=rng, element_types=kinds, elements=solution.keys(), n_houses=3
    ).set_constraints()
    puzzle.solution = solution if known else None
    clues = generate.generate_found_at(puzzle, solution)
    assert generate.has_unique_solution(puzzle, clues)
    assert not generate.has_unique_solution(puzzle, set())
    assert puzzle.clues == set()


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
