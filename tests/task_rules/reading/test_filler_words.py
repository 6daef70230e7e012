"""Words that may stand around an answer."""

import string

import pytest

from rg_env.task_rules.reading.filler_words import asked_words, is_filler, lead_end


def test_filler_words_are_no_answer_and_what_may_be_one_is_no_filler():
    fillers = ["", "The answer is", "so: ", "**", "\\boxed{}"]
    others = ["or", "5", "not", "#", *string.ascii_lowercase]
    assert list(filter(is_filler, fillers + others)) == fillers


ANNOUNCED = """
The answer is ¦$5$
Answer: ¦$5$
**Answer:** ¦$5$
- **Answer:** ¦$5$
ANSWER:¦$5$
The moves are:↵¦$5$
### Final Answer↵↵¦$5$
Therefore, ¦$5$
So the answer is: ¦$5$
Moves: ¦$5$
The simplified fraction is ¦$5$
Roots: ¦$5$
Total = ¦$5$
Final Answer: The final answer is ¦$5$
The list will be ¦$5$
Here is the list:¦$5$
Sorted list: ¦$5$
Answer:↵The right answer is ¦$5$
¦Not: 5
The answer is ¦not: 5
¦It isn't 5
¦The wrong answer is 5
¦the cat is 5
¦a: 5
¦A=5
¦so the word
¦is 5
¦5: 6
¦x + 1 = 5
¦True = False
¦mother = husband
¦word↵list↵of
¦on: 5
¦on = 5
¦left: 5
¦right = 5
¦from: 5
¦valid: 5
¦a total of x 5
¦left↵5
¦on will be 5
¦left will be 5
¦right is: 5
¦will be: 5
¦to be↵5
Answer: ¦on↵off
Answer: ¦on↵Answer: off
Answer: ¦on↵Answer: on
"""
"""Texts with a bar at the end of the lead of the answer."""


@pytest.mark.parametrize("row", ANNOUNCED.strip().splitlines())
def test_the_lead_ends_where_the_answer_begins_and_denies_nothing(row):
    lead, _, rest = row.replace("↵", "\n").partition("¦")
    assert lead_end(lead + rest) == len(lead)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How many sisters does Mary's brother have?", {"sisters"}),
        ("Is it true? Return True if it is not, or False otherwise.", set()),
        ("What is Jacob to Sarah?", set()),
    ],
)
def test_names_in_a_question_are_not_the_words_that_it_asks_for(question, words):
    others = {"mary", "brother", "true", "not", "false", "jacob", "sarah"}
    assert asked_words(question) & (others | {"sisters"}) == words
