"""rubiks_cube: every turn is made."""

from __future__ import annotations

import pytest

from rg_env.tasks import library
from tests.support.fixed_scores import fixed_score


@pytest.mark.parametrize("more", ["2R", "2R'", "U2'", "42", "hello", "0R", "9R"])
def test_nothing_beside_a_solution_is_passed_over(more: str) -> None:
    entry = library.make_entry("rubiks_cube", {}, 5)
    gold = entry["metadata"]["example_correct_answer"]
    assert fixed_score("rubiks_cube", entry, gold) == 1.0
    assert fixed_score("rubiks_cube", entry, f"{gold} {more}") == 0.0
