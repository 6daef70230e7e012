"""Formulas of the library that contradict each other or say the same."""

# ruff: noqa: RUF001 - the signs of logic are what is tested

from __future__ import annotations

import pytest

from rg_env.task_rules.logic.propositional_logic import is_stated, share_left
from rg_env.tasks import library
from rg_env.tasks.scales import load_shipped

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
    assert share_left(premises, LETTERS) == 0


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
    assert share_left(premises, LETTERS) > 0


@pytest.mark.parametrize("seed", [8_800_013])
def test_premises_that_are_tautologies_are_not_asked(seed: int) -> None:
    params = load_shipped().scales["propositional_logic"].steps[-1].params
    with pytest.raises(library.UnusableEntry, match="in every one"):
        library.make_entry("propositional_logic", params, seed)


def test_ten_letters_are_read_as_well() -> None:
    letters = [chr(ord("P") + n) for n in range(10)]
    assert share_left([*letters, f"¬{letters[9]}"], letters) == 0
    assert share_left(letters, letters) == 1 / 1024


@pytest.mark.parametrize("formula", ["", "P Q", "(P ∧ S)", "(P ∧ Q", "P)"])
def test_what_the_library_does_not_write_is_an_error(formula: str) -> None:
    with pytest.raises(ValueError, match="no formula"):
        share_left([formula], LETTERS)


def test_a_conclusion_is_stated_where_a_premise_says_the_same() -> None:
    premises = ["(P → Q)", "(R ∧ P)"]
    assert is_stated("(¬Q → ¬P)", premises, LETTERS)
    assert not is_stated("(P ∧ Q)", premises, LETTERS)
