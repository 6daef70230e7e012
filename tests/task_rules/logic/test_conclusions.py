"""Conclusions of propositional_logic, and what they are worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rg_env.task_rules.reading.formulas import read_formula
from tests.support.fixed_scores import entry_of, fixed_score, mean_score

OR = "\N{LOGICAL OR}"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("P", 0b1010),
        ("¬P ∧ Q", 0b0100),
        ("P → Q → P", 0b1010 | 0b0000),
        (f"P {OR} Q ∧ ¬P", 0b1110),
        ("¬(P ↔ Q)", 0b0110),
        ("¬¬P", 0b1010),
    ],
)
def test_a_formula_is_read_with_the_librarys_precedence(text: str, rows: int) -> None:
    found = read_formula(text, ["P", "Q"])
    assert found is not None
    assert found.rows == rows


@pytest.mark.parametrize(
    "text", ["", "P Q", "P ∧", "(P", "P)", "()", "R", "P ¬ Q", "∧ P", "p", "P(Q)"]
)
def test_what_is_no_formula_of_the_letters_is_not_read(text: str) -> None:
    assert read_formula(text, ["P", "Q"]) is None


def shortest_premises(entry: dict[str, Any]) -> str:
    return " ∧ ".join(sorted(entry["metadata"]["premises"], key=len)[:2])


@pytest.mark.parametrize(
    "trick", [shortest_premises, lambda entry: entry["metadata"]["premises"][0]]
)
def test_to_repeat_premises_earns_no_half_on_average(
    trick: Callable[[dict[str, Any]], str],
) -> None:
    made = [entry_of("propositional_logic", seed) for seed in range(7000, 7040)]
    assert mean_score("propositional_logic", made, trick) < 0.5


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [
        ("P ∧ Q", 1.0),
        ("Q ∧ Q", 1.0),
        (f"P {OR} Q", 0.1),
        ("Q ∧ (Q → P)", 0.1),
        ("Q → P", 0.1),
        ("P", 1.0),
        ("Q", 0.1),
        ("¬P ∧ Q", 0.05),
    ],
)
def test_a_conclusion_is_paid_for_an_inference(answer: str, fixed: float) -> None:
    metadata = {"premises": ["Q", "(Q → P)"], "variables": ["P", "Q"]}
    entry = {"answer": None, "metadata": {**metadata, "example_answer": "(Q ∧ Q)"}}
    assert fixed_score("propositional_logic", entry, answer) == fixed


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [
        ("P → R", 1.0),
        (f"¬P {OR} R", 1.0),
        ("¬R → ¬P", 1.0),
        ("¬(P ∧ ¬R)", 1.0),
        ("S", 1.0),
        (f"S {OR} P", 0.1),
        ("P → S", 0.1),
        ("P → Q", 0.1),
        ("(P ∧ Q) → R", 0.1),
        (f"S {OR} ¬S", 0.25),
        ("R → P", 0.05),
        ("¬S", 0.05),
    ],
)
def test_a_clause_is_paid_if_no_part_of_it_follows_alone(
    answer: str, fixed: float
) -> None:
    metadata = {
        "premises": ["(P → Q)", "(Q → R)", f"(S {OR} T)", "¬T"],
        "variables": ["P", "Q", "R", "S", "T"],
    }
    entry = {"answer": None, "metadata": {**metadata, "example_answer": "(S ∧ ¬T)"}}
    assert fixed_score("propositional_logic", entry, answer) == fixed


@pytest.mark.parametrize("answer", [f"Q {OR} P", "¬P → Q", f"(P {OR} Q)"])
def test_what_says_the_same_as_the_example_is_paid_like_it(answer: str) -> None:
    metadata = {"premises": ["(P ↔ ¬Q)"], "variables": ["P", "Q"]}
    example = f"(P {OR} Q)"
    entry = {"answer": None, "metadata": {**metadata, "example_answer": example}}
    assert fixed_score("propositional_logic", entry, answer) == 1.0


@pytest.mark.parametrize(
    ("answer", "premises", "scored"),
    [
        ("¬(P ∧ Q)", ["((P ∧ Q) → ¬Q)", "R"], 1.0),
        ("P → ¬Q", ["((P ∧ Q) → ¬Q)", "R"], 1.0),
        ("R ∧ ¬(P ∧ Q)", ["((P ∧ Q) → ¬Q)", "R"], 1.0),
        ("P", [f"((Q {OR} ¬Q) → (P ∧ P))", "R"], 1.0),
        ("P ∧ Q", ["R", "(R → P)", "(P → Q)"], 1.0),
        ("P ↔ R", ["(P ↔ Q)", "(R ↔ Q)"], 1.0),
        ("(P ∧ Q) → ¬Q", ["((P ∧ Q) → ¬Q)", "R"], 0.1),
        ("¬P ∧ Q", ["¬P", "Q", "R"], 0.1),
        (f"¬(P {OR} ¬Q)", ["¬P", "Q", "R"], 0.1),
        (f"(R {OR} ¬R) → (¬P ∧ Q)", ["¬P", "Q", "R"], 0.1),
        ("(P ↔ Q) ∧ R", ["(P ↔ Q)", "R"], 0.1),
        (f"¬¬(¬P {OR} Q)", ["(P → Q)", "R"], 0.1),
        ("R", ["(R ∧ R)", "P"], 0.1),
        ("R", [f"(R {OR} R)", "P"], 0.1),
        ("P ↔ Q", ["P", "Q"], 0.1),
        ("P ∧ (R → R)", ["P", "Q"], 0.1),
    ],
)
def test_an_inference_is_scored_in_full_and_a_restatement_is_not(
    answer: str, premises: list[str], scored: float
) -> None:
    metadata = {"premises": premises, "variables": ["P", "Q", "R"]}
    entry = {"answer": None, "metadata": {**metadata, "example_answer": f"(R {OR} P)"}}
    assert fixed_score("propositional_logic", entry, answer) == scored
