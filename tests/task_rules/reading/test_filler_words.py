"""Which words may stand around an answer."""

import string

import pytest

from rg_env.task_rules.reading.filler_words import (
    asked_words,
    is_filler,
    lead_end,
)


def test_filler_words_are_no_answer_and_what_may_be_one_is_no_filler():
    fillers = ["", "The answer is", "so: ", "**", "\\boxed{}"]
    others = ["or", "5", "not", "#", *string.ascii_lowercase]
    assert list(filter(is_filler, fillers + others)) == fillers


@pytest.mark.parametrize(
    "lead",
    [
        *("The answer is ", "Answer: ", "**Answer:** ", "- **Answer:** ", "ANSWER:"),
        *("The moves are:\n", "### Final Answer\n\n", "Therefore, "),
        *("So the answer is: ", "Moves: ", "The simplified fraction is "),
        *("Roots: ", "Total = ", "Final Answer: The final answer is "),
        *("The list will be ", "Here is the list:", "Sorted list: "),
        "Answer:\nThe right answer is ",
    ],
)
def test_what_announces_an_answer_ends_where_it_begins(lead):
    assert lead_end(f"{lead}$5$") == len(lead)


@pytest.mark.parametrize(
    "text",
    [
        *("Not: 5", "The answer is not: 5", "It isn't 5", "The wrong answer is 5"),
        *("the cat is 5", "a: 5", "A=5", "so the word", "is 5", "5: 6", "x + 1 = 5"),
        *("True = False", "mother = husband", "word\nlist\nof", "", "on: 5", "on = 5"),
        *("left: 5", "right = 5", "from: 5", "valid: 5", "a total of x 5", "left\n5"),
        *("on will be 5", "left will be 5", "right is: 5", "will be: 5", "to be\n5"),
    ],
)
def test_what_may_deny_it_or_belong_to_it_announces_nothing(text):
    assert "5" not in text[: lead_end(text)]
    assert text[lead_end(text) :] in (text, "not: 5")


@pytest.mark.parametrize("second", ["off", "Answer: off", "Answer: on"])
def test_what_announces_an_answer_ends_before_the_first_one(second):
    text = f"Answer: on\n{second}"
    assert text[lead_end(text) :] == f"on\n{second}"


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How many sisters does Mary's brother have?", {"sisters"}),
        ("Is it true? Return True if it is not, or False otherwise.", set()),
        ("What is Jacob to Sarah?", set()),
    ],
)
def test_whom_a_question_is_about_is_not_what_it_asks_for(question, words):
    others = {"mary", "brother", "true", "not", "false", "jacob", "sarah"}
    assert asked_words(question) & (others | {"sisters"}) == words
