"""What simulated models write that know no answer key."""

import unicodedata

import pytest

from tests.support.hostile_texts import HOSTILE
from tests.support.text_models import Arithmetic, solve


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Find the Greatest Common Divisor (GCD) of these numbers: 12, 18", "6"),
        ("Calculate the following expression: 12 - 5 + 3 =", "10"),
        ("How many legs have 4 cats?", "4"),
        ("Nothing to count here.", "0"),
    ],
)
def test_sums_and_divisors_are_solved_and_others_are_guessed(question, answer):
    assert solve(question) == answer


def test_arithmetic_is_right_in_about_half_of_its_completions():
    texts = Arithmetic(seed=1)("What is 2 + 3?", 400)
    right = texts.count("<think>hm</think><answer>5</answer>")
    assert 160 < right < 240
    assert right + texts.count("<think>hm</think><answer>no</answer>") == 400


@pytest.mark.parametrize(("name", "is_read_as"), [("wide", "open"), ("bold", "open")])
def test_look_alikes_are_names_to_a_parser(name, is_read_as):
    text = next(t.text for t in HOSTILE if t.name == f"alike:{name}_open")
    assert is_read_as not in text
    assert is_read_as in unicodedata.normalize("NFKC", text)
