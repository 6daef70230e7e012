"""What follows from statements and clues, and what answers to riddles are paid."""

import importlib
import itertools
import random

import pytest

from rg_env.library import registry
from rg_env.task_rules.logic.puzzles import (
    follows,
    has_no_such_brother,
    women_around_matilda,
)

# -- aiw -------------------------------------------------------------------------------

COLLEAGUES = (
    "Alice has 4 male colleagues and she also has 6 female colleagues. Bob has 1 male"
    " colleagues and 4 female colleagues in total. She is colleague of Bob. How many"
    " female colleagues does Matilda have?"
)


def test_matilda_is_counted_in_no_circle_and_alice_in_hers():
    assert women_around_matilda(COLLEAGUES) == (6 - 1) + 1 + (4 - 1)


def test_an_only_brother_has_no_brother():
    told = "Mary has {} sisters and she also has {} brothers. How many sisters does"
    assert has_no_such_brother(f"{told.format(3, 1)} David's brother have?")
    assert not has_no_such_brother(f"{told.format(1, 3)} David's brother have?")
    assert not has_no_such_brother(f"{told.format(3, 1)} Mary's brother have?")


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

TERMS = ("a", "b", "c")


def holds(text, there):
    how, subject, *_, predicate = text.split()
    a, b = TERMS.index(subject), TERMS.index(predicate)
    both = any(kind[a] and kind[b] for kind in there)
    rest = any(kind[a] and not kind[b] for kind in there)
    if how == "Some":
        return rest if "not" in text else both
    return not (rest if how == "All" else both)


@pytest.mark.parametrize("are_there", [False, True])
def test_a_conclusion_follows_if_it_holds_in_all_worlds_of_its_premises(are_there):
    kinds = list(itertools.product((False, True), repeat=3))
    worlds = [
        {kind for kind, is_there in zip(kinds, chosen, strict=True) if is_there}
        for chosen in itertools.product((False, True), repeat=8)
    ]
    if are_there:
        worlds = [w for w in worlds if all(any(k[i] for k in w) for i in range(3))]
    forms = ("All {} are {}", "No {} are {}", "Some {} are {}", "Some {} are not {}")
    for one, two, end, to in itertools.product(forms, forms, forms, ("bc", "cb")):
        premises = [one.format("a", "b"), two.format(*to)]
        conclusion = end.format("c", "a")
        expected = all(
            holds(conclusion, world)
            for world in worlds
            if all(holds(premise, world) for premise in premises)
        )
        assert follows(premises, conclusion, are_there) is expected


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
