"""What a text scores that a model could write for an item of the library."""

import pytest

from rg_env.library import datasets
from rg_env.library.worker_jobs import score_answers
from rg_env.reward.extraction import extract_answer

SOLAR = "<|end|><|begin|>assistant<|content|>"
LONG_SUM = {"problem_type_weights": [0, 0, 0, 0, 1, 0, 0, 0]}


@pytest.mark.parametrize(
    ("task", "params", "seed", "answer", "least", "most"),
    [
        ("propositional_logic", {}, 611210, "R = P ∨ ¬Q", 0, 0.5),  # noqa: RUF001
        ("gcd", {}, 79375703, "gcd(492, 243) = 3", 1, 1),
        ("complex_arithmetic", {}, 611201, "16.0i + 9.0", 1, 1),
        ("sokoban", {}, 611201, "llluuldllulduurdrulurddrdldrr", 1, 1),
        ("syllogism", {}, 611201, "No,", 1, 1),
        ("course_schedule", {}, 611201, "True,", 1, 1),
        ("fraction_simplification", {}, 611201, "9163/17171", 0, 0.05),
        ("dice", {}, 611201, "3358/5120", 0, 0.05),
        ("coin_flip", {}, 611202, r"\boxed{\frac{1}{256}}", 0, 0.05),
        ("power_function", {}, 611201, "-5.28e-11", 0, 0.05),
        ("intermediate_integration", {}, 89000011, "-Integral(x*sin(x), x) + C", 0, 0),
        ("intermediate_integration", {}, 89000011, "x*cos(x) - sin(x)", 1, 1),
        (
            "intermediate_integration",
            LONG_SUM,
            89100001,
            "Integral(x**2*sin(2*x), x) + C",
            0,
            0,
        ),
    ],
)
def test_an_answer_scores_as_it_should(task, params, seed, answer, least, most):
    entry = datasets.make_entry(task, params, seed)
    ((score, *_),) = score_answers(task, params, entry, [answer])
    assert least <= score <= most


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        (f"<|think|>perhaps <answer>3</answer>{SOLAR}The answer is 4.", 0),
        (f"<|think|>perhaps <answer>4</answer>{SOLAR}<answer>3</answer>", 1),
        (
            '<think>x</think><|python_tag|>{"text": "<answer>3</answer>"}<|eom_id|>',
            0,
        ),
    ],
)
def test_the_final_answer_of_a_completion_counts(completion, score):
    assert extract_answer(completion).answer == ("3" if score else None)
