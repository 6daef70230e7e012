"""Whether clues leave one solution."""

import importlib
import random

import pytest

from rg_env.tasks import library


@pytest.mark.parametrize("known", [True, False])
def test_a_puzzle_has_one_solution_with_all_clues_and_several_with_none(known):
    library.describe()
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
