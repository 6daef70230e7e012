"""What follows from statements and clues, and what answers to riddles are paid."""

from __future__ import annotations

import importlib
import itertools
import random
from typing import Any

import pytest

from rg_env.library import datasets, registry
from rg_env.task_rules.logic.puzzles import (
    follows,
    has_no_such_brother,
    women_around_matilda,
)
from tests.support.fixed_scores import entries, entry_of, fixed_score, mean_score

# -- aiw -------------------------------------------------------------------------------

COLLEAGUES = (
    "Alice has 4 male colleagues and she also has 6 female colleagues. Bob has 1 male"
    " colleagues and 4 female colleagues in total. She is colleague of Bob. How many"
    " female colleagues does Matilda have?"
)


def test_matilda_is_counted_in_no_circle_and_alice_in_hers():
    assert women_around_matilda(COLLEAGUES) == (6 - 1) + 1 + (4 - 1)


def test_another_riddle_is_not_about_matilda():
    assert women_around_matilda("Mary has 2 sisters and she also has") is None


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


# -- knights_knaves --------------------------------------------------------------------


def all_knights(entry: dict[str, Any]) -> str:
    knight = entry["metadata"]["knight_knave_terms"]["a_knight"]
    return ", ".join(f"{name} is {knight}" for name in entry["metadata"]["names"])


def test_to_call_everybody_a_knight_earns_no_half_on_average() -> None:
    made = [entry_of("knights_knaves", seed) for seed in range(7000, 7040)]
    assert mean_score("knights_knaves", made, all_knights) < 0.5


def test_one_of_three_roles_wrong_is_paid_above_the_coin() -> None:
    entry = datasets.make_entry("knights_knaves", {"n_people": 3}, 7000)
    terms, metadata = entry["metadata"]["knight_knave_terms"], entry["metadata"]
    roles = [
        terms["a_knight" if knight else "a_knave"]
        for knight in (not metadata["solution"][0], *metadata["solution"][1:])
    ]
    answer = ", ".join(
        f"{n} is {r}" for n, r in zip(metadata["names"], roles, strict=True)
    )
    assert fixed_score("knights_knaves", entry, answer) == pytest.approx(1 / 6)


def test_a_name_with_both_roles_says_nothing() -> None:
    entry = entries("knights_knaves")[0]
    name, terms = entry["metadata"]["names"][0], entry["metadata"]["knight_knave_terms"]
    answer = f"{name} is {terms['a_knight']} and {name} is {terms['a_knave']}"
    assert fixed_score("knights_knaves", entry, answer) == 0.0


# -- syllogisms ------------------------------------------------------------------------

TERMS = ("a", "b", "c")


@pytest.mark.parametrize(
    ("premises", "conclusion", "is_valid"),
    [
        (["All a are b", "All b are c"], "All a are c", True),
        (["No a are b", "All c are b"], "No c are a", True),
        (["Some a are b", "All b are c"], "Some c are a", True),
        (["Some a are not b", "All c are b"], "Some a are not c", True),
        (["All a are b", "Some b are c"], "Some a are c", False),
        (["All a are b", "All c are b"], "All a are c", False),
        (["No a are b", "No b are c"], "No a are c", False),
    ],
)
def test_a_conclusion_follows_by_either_reading_or_by_none(
    premises, conclusion, is_valid
):
    assert follows(premises, conclusion, False) == is_valid
    assert follows(premises, conclusion, True) == is_valid


def test_of_all_some_follows_only_where_there_are_such_things():
    premises = ["All a are b", "All b are c"]
    assert not follows(premises, "Some c are a", False)
    assert follows(premises, "Some c are a", True)


def holds(text: str, there: set[tuple[bool, ...]]) -> bool:
    how, subject, *_, predicate = text.split()
    a, b = TERMS.index(subject), TERMS.index(predicate)
    both = any(kind[a] and kind[b] for kind in there)
    rest = any(kind[a] and not kind[b] for kind in there)
    if how == "Some":
        return rest if "not" in text else both
    return not (rest if how == "All" else both)


@pytest.mark.parametrize("are_there", [False, True])
def test_it_is_what_trying_all_worlds_says(are_there):
    kinds = list(itertools.product((False, True), repeat=3))
    worlds = [
        {kind for kind, is_there in zip(kinds, chosen, strict=True) if is_there}
        for chosen in itertools.product((False, True), repeat=8)
    ]
    if are_there:
        worlds = [w for w in worlds if all(any(k[i] for k in w) for i in range(3))]
    forms = ("All {} are {}", "No {} are {}", "Some {} are {}", "Some {} are not {}")
    for one, two, end in itertools.product(forms, repeat=3):
        premises = [one.format("a", "b"), two.format("b", "c")]
        conclusion = end.format("c", "a")
        expected = all(
            holds(conclusion, world)
            for world in worlds
            if all(holds(premise, world) for premise in premises)
        )
        assert follows(premises, conclusion, are_there) is expected


def test_another_statement_is_refused():
    with pytest.raises(ValueError, match="no categorical statement"):
        follows(["Most a are b"], "All a are b", True)
