"""Conclusions of propositional_logic: what they are worth, and which are sampled."""

# ruff: noqa: RUF001 - the signs of logic are what is tested

import pytest

from rg_env.task_rules.logic.propositional_logic import is_stated, share_left
from rg_env.task_rules.reading.formulas import read_formula
from rg_env.tasks import library
from rg_env.tasks.scales import load_shipped
from tests.support.fixed_scores import entry_of, fixed_score, mean_score


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("P", 0b1010),
        ("¬P ∧ Q", 0b0100),
        ("P → Q → P", 0b1010 | 0b0000),
        ("P ∨ Q ∧ ¬P", 0b1110),
        ("¬(P ↔ Q)", 0b0110),
        ("¬¬P", 0b1010),
    ],
)
def test_a_formula_is_read_with_the_librarys_precedence(text, rows):
    found = read_formula(text, ["P", "Q"])
    assert found is not None
    assert found.rows == rows


@pytest.mark.parametrize(
    "text", ["", "P Q", "P ∧", "(P", "P)", "()", "R", "P ¬ Q", "∧ P", "p", "P(Q)"]
)
def test_what_is_no_formula_of_the_letters_is_not_read(text):
    assert read_formula(text, ["P", "Q"]) is None


def shortest_premises(entry):
    return " ∧ ".join(sorted(entry["metadata"]["premises"], key=len)[:2])


@pytest.mark.parametrize(
    "trick", [shortest_premises, lambda entry: entry["metadata"]["premises"][0]]
)
def test_to_repeat_premises_earns_no_half_on_average(trick):
    made = [entry_of("propositional_logic", seed) for seed in range(7000, 7040)]
    assert mean_score("propositional_logic", made, trick) < 0.5


SCORES = [
    (
        ["Q", "(Q → P)"],
        "(Q ∧ Q)",
        {
            1.0: ["P ∧ Q", "Q ∧ Q", "P"],
            0.1: ["P ∨ Q", "Q ∧ (Q → P)", "Q → P", "Q"],
            0.05: ["¬P ∧ Q"],
        },
    ),
    (  # a clause, of which no part follows alone
        ["(P → Q)", "(Q → R)", "(S ∨ T)", "¬T"],
        "(S ∧ ¬T)",
        {
            1.0: ["P → R", "¬P ∨ R", "¬R → ¬P", "¬(P ∧ ¬R)", "S"],
            0.25: ["S ∨ ¬S"],
            0.1: ["S ∨ P", "P → S", "P → Q", "(P ∧ Q) → R"],
            0.05: ["R → P", "¬S"],
        },
    ),
    # the same as the example
    (["(P ↔ ¬Q)"], "(P ∨ Q)", {1.0: ["Q ∨ P", "¬P → Q", "(P ∨ Q)"]}),
    (
        ["((P ∧ Q) → ¬Q)", "R"],
        "(R ∨ P)",
        {1.0: ["¬(P ∧ Q)", "P → ¬Q", "R ∧ ¬(P ∧ Q)"], 0.1: ["(P ∧ Q) → ¬Q"]},
    ),
    (["((Q ∨ ¬Q) → (P ∧ P))", "R"], "(R ∨ P)", {1.0: ["P"]}),
    (["R", "(R → P)", "(P → Q)"], "(R ∨ P)", {1.0: ["P ∧ Q"]}),
    (["(P ↔ Q)", "(R ↔ Q)"], "(R ∨ P)", {1.0: ["P ↔ R"]}),
    (
        ["¬P", "Q", "R"],
        "(R ∨ P)",
        {0.1: ["¬P ∧ Q", "¬(P ∨ ¬Q)", "(R ∨ ¬R) → (¬P ∧ Q)"]},
    ),
    (["(P ↔ Q)", "R"], "(R ∨ P)", {0.1: ["(P ↔ Q) ∧ R"]}),
    (["(P → Q)", "R"], "(R ∨ P)", {0.1: ["¬¬(¬P ∨ Q)"]}),
    (["(R ∧ R)", "P"], "(R ∨ P)", {0.1: ["R"]}),
    (["(R ∨ R)", "P"], "(R ∨ P)", {0.1: ["R"]}),
    (["P", "Q"], "(R ∨ P)", {0.1: ["P ↔ Q", "P ∧ (R → R)"]}),
]
"""Premises, the library's example, and what conclusions score."""


@pytest.mark.parametrize(("premises", "example", "scores"), SCORES)
def test_an_inference_is_scored_in_full_and_a_restatement_is_not(
    premises, example, scores
):
    letters = sorted(set("PQRST") & set("".join([*premises, example])))
    metadata = {"premises": premises, "variables": letters, "example_answer": example}
    entry = {"answer": None, "metadata": metadata}
    for score, answers in scores.items():
        for answer in answers:
            assert fixed_score("propositional_logic", entry, answer) == score, answer


LETTERS = ["P", "Q", "R"]


@pytest.mark.parametrize(
    ("premises", "is_left"),
    [
        (["P", "¬P"], False),
        (["(P ∧ Q)", "(Q → ¬P)"], False),
        (["(P ↔ Q)", "(P ∨ Q)", "¬(P ∧ Q)"], False),
        (["¬(P ∨ ¬P)"], False),
        (["((P → Q) ∧ (P ∧ ¬Q))"], False),
        (["P"], True),
        (["¬¬P", "(Q → ¬P)"], True),
        (["(P ∨ Q)", "¬P"], True),
        (["((P → Q) ↔ (¬Q → ¬P))", "(R ∧ ¬(P ∧ Q))"], True),
    ],
)
def test_premises_contradict_where_no_case_makes_all_of_them_true(premises, is_left):
    assert bool(share_left(premises, LETTERS)) == is_left


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
