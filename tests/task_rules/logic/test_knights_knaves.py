"""knights_knaves: one role for each."""

from __future__ import annotations

from typing import Any

import pytest

from rg_env.tasks import library
from tests.support.fixed_scores import entries, entry_of, fixed_score, mean_score


def all_knights(entry: dict[str, Any]) -> str:
    knight = entry["metadata"]["knight_knave_terms"]["a_knight"]
    return ", ".join(f"{name} is {knight}" for name in entry["metadata"]["names"])


def test_to_call_everybody_a_knight_earns_no_half_on_average() -> None:
    made = [entry_of("knights_knaves", seed) for seed in range(7000, 7040)]
    assert mean_score("knights_knaves", made, all_knights) < 0.5


def test_one_of_three_roles_wrong_is_paid_above_the_coin() -> None:
    entry = library.make_entry("knights_knaves", {"n_people": 3}, 7000)
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
