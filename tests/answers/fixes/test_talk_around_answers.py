"""Which words may stand around an answer."""

from __future__ import annotations

import string

import pytest

from rg_env.answers.fixes.talk_around_answers import is_talk, is_wrapper


@pytest.mark.parametrize(
    "answer",
    ["5", "The answer is 5.", "x = 5", "5 legs", "**5**", "\\boxed{5}", "5\nSo 5."],
)
def test_talk_around_the_gold_answer_is_a_wrapper(answer: str) -> None:
    assert is_wrapper(answer, "5")


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "-5",
        "- 5",
        "50",
        "1/5",
        ".5",
        "5.5",
        "5,5",
        "5e3",
        "5%",
        "5!",
        "~5",
        "5#",
        "5 or 6",
        "5, 6",
        "five or 5",
        "not 5",
        "x5",
        "5_",
        "5²",
        "<answer>5</answer>",
    ],
)
def test_another_number_or_a_choice_is_no_wrapper(answer: str) -> None:
    assert not is_wrapper(answer, "5")


@pytest.mark.parametrize("answer", ["True False", "not True", "Untrue", "Truex", ""])
def test_both_choices_or_another_word_are_no_wrapper(answer: str) -> None:
    assert not is_wrapper(answer, "True")


def test_an_empty_gold_answer_is_in_no_wrapper() -> None:
    assert not is_wrapper("anything", "")


@pytest.mark.parametrize("text", ["", "The answer is", "so: ", "**", "\\boxed{}"])
def test_talk_is_no_answer(text: str) -> None:
    assert is_talk(text)


@pytest.mark.parametrize("text", ["or", "5", "not", "#", *string.ascii_lowercase])
def test_what_may_be_an_answer_is_no_talk(text: str) -> None:
    assert not is_talk(text)
