"""Guesses that other questions of a task teach."""

import pytest

from tools.trivial_baselines.learned_guesses import GUESSES

CLOCKS = [
    ("From 10:00 to 11:00? Answer in HH:MM.", "01:00"),
    ("From 01:00 to 10:00? Answer in HH:MM.", "09:00"),
    ("From 02:00 to 05:00? Answer in HH:MM.", "03:00"),
    ("From May 1 to May 9? Answer in days.", "8 days"),
]
WEEKDAYS = [
    ("Is 2001 a leap year?", "No"),
    ("Is 2004 a leap year?", "Yes"),
    ("Is 2005 a leap year?", "No"),
    ("Which day follows Monday?", "Tuesday"),
]


@pytest.mark.parametrize(
    ("guess", "question", "seen", "answer"),
    [
        (
            "middle answer of the form asked for",
            "From 07:00 to 08:00? Answer in HH:MM.",
            CLOCKS,
            "03:00",
        ),
        (
            "sum of its numbers that is right oftenest",
            "Ann has 2 brothers and 7 sisters. How many sisters has her brother?",
            [
                ("Eve has 4 brothers and 3 sisters. How many?", "5"),
                ("Sue has 1 brothers and 6 sisters. How many?", "7"),
                ("Liz has 0 brothers and 2 sisters. How many?", "2"),
            ],
            "8",
        ),
        ("commonest answer to such a wording", "Is 1999 a leap year?", WEEKDAYS, "No"),
        (
            "commonest answer of the form asked for",
            "We met in June. Which day follows Friday?",
            WEEKDAYS,
            "Tuesday",
        ),
    ],
)
def test_a_guess_is_what_alike_questions_teach(guess, question, seen, answer):
    assert GUESSES[guess](question, seen) == answer


def test_the_answer_to_the_same_question_is_not_remembered():
    guess = GUESSES["commonest answer to such a wording"]
    assert guess("Is 2004 a leap year?", WEEKDAYS) == "No"
    assert guess("Which day follows Monday?", WEEKDAYS) is None
