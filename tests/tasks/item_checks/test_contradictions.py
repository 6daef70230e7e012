"""Formulas of the library that contradict each other or say the same."""

# ruff: noqa: RUF001 - the signs of logic are what is tested

from __future__ import annotations

import pytest

from rg_env.tasks.item_checks.contradictions import contradict, is_stated

LETTERS = ["P", "Q", "R"]


@pytest.mark.parametrize(
    "premises",
    [
        ["P", "¬P"],
        ["(P ∧ Q)", "(Q → ¬P)"],
        ["(P ↔ Q)", "(P ∨ Q)", "¬(P ∧ Q)"],
        ["¬(P ∨ ¬P)"],
        ["((P → Q) ∧ (P ∧ ¬Q))"],
    ],
)
def test_premises_that_are_never_all_true_contradict(premises: list[str]) -> None:
    assert contradict(premises, LETTERS)


@pytest.mark.parametrize(
    "premises",
    [
        ["P"],
        ["¬¬P", "(Q → ¬P)"],
        ["(P ∨ Q)", "¬P"],
        ["((P → Q) ↔ (¬Q → ¬P))", "(R ∧ ¬(P ∧ Q))"],
    ],
)
def test_premises_that_can_all_be_true_do_not(premises: list[str]) -> None:
    assert not contradict(premises, LETTERS)


def test_ten_letters_are_read_as_well() -> None:
    letters = [chr(ord("P") + n) for n in range(10)]
    assert contradict([*letters, f"¬{letters[9]}"], letters)
    assert not contradict(letters, letters)


@pytest.mark.parametrize("formula", ["", "P ∧ Q", "(P ∧ S)", "(P ∧ Q", "P)"])
def test_what_the_library_does_not_write_is_an_error(formula: str) -> None:
    with pytest.raises(ValueError, match="no formula"):
        contradict([formula], LETTERS)


def test_a_conclusion_is_stated_where_a_premise_says_the_same() -> None:
    premises = ["(P → Q)", "(R ∧ P)"]
    assert is_stated("(¬Q → ¬P)", premises, LETTERS)
    assert not is_stated("(P ∧ Q)", premises, LETTERS)
