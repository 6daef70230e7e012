"""Fixes of the category cognition."""

from __future__ import annotations

import pytest
from fixed_scores import fixed_score

from rg_env.tasks import library


def big_cube(scramble: str) -> dict[str, object]:
    """Return an entry of a cube with four layers."""
    metadata = {"cube_size": 4, "scramble_moves": scramble}
    return {"answer": None, "metadata": metadata}


@pytest.mark.parametrize("answer", ["2R' U'", "2R 2R 2R U'", "Rw' R U'", "R Rw' 1U'"])
def test_turns_of_inner_layers_are_played(answer: str) -> None:
    assert fixed_score("rubiks_cube", big_cube("U 2R"), answer) == 1.0


@pytest.mark.parametrize("more", ["2R", "2R'", "U2'", "42", "hello", "0R", "9R"])
def test_nothing_beside_a_solution_is_passed_over(more: str) -> None:
    entry = library.make_entry("rubiks_cube", {}, 5)
    gold = entry["metadata"]["example_correct_answer"]
    assert fixed_score("rubiks_cube", entry, gold) == 1.0
    assert fixed_score("rubiks_cube", entry, f"{gold} {more}") <= 0.05
