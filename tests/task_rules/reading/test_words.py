"""A word that the question names is that word in any case."""

import pytest

from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.reading.words import in_any_case
from rg_env.task_rules.table import rules_of


@pytest.mark.parametrize("answer", ["yes", "YES", "Yes"])
def test_the_right_word_in_another_case_is_the_right_word(answer):
    assert in_any_case(answer, {"answer": "Yes"}) == "Yes"


@pytest.mark.parametrize("answer", ["no", "yes no", "yess", ""])
def test_any_other_text_stays_as_it_is(answer):
    assert in_any_case(answer, {"answer": "Yes"}) == answer


FOLLOWS = (
    "1. All engineers are whales\n2. All whales are teachers\n"
    "Does it logically follow that:\nSome teachers are not whales?\n(Answer Yes or No)"
)

normalizer = ScoringRules().normalizer


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("Yes, it follows.", "Yes"),
        ("yes - it logically follows", "Yes"),
        ("Yes, it follows that some teachers are not whales.", "Yes"),
        ("Yes (valid)", "Yes"),
        ("No, it does not follow.", "No"),
        ("No. It doesn\u2019t follow", "No"),
        ("No, it does not follow that some teachers are not whales", "No"),
    ],
)
def test_a_verdict_may_be_said_again_in_words_of_the_question(answer, gold):
    entry = {"answer": gold, "question": FOLLOWS}
    assert rules_of("syllogism").notation(answer, entry) == gold


@pytest.mark.parametrize(
    "answer",
    [
        *(
            *("Yes, it does not follow", "No, it follows", "Yes or no", "Yes, no"),
            "Not yes",
        ),
        *("Yes, if pigs fly", "It follows", "Maybe yes", "Yes but false"),
    ],
)
def test_a_verdict_that_is_taken_back_stays_as_it_is(answer):
    for gold in ("Yes", "No"):
        entry = {"answer": gold, "question": FOLLOWS}
        assert rules_of("syllogism").notation(answer, entry) == answer


@pytest.mark.parametrize(
    ("answer", "gold", "spelled"),
    [
        ("tuesday", "Tuesday", "Tuesday"),
        ("It was a Tuesday", "Tuesday", "Tuesday"),
        ("It was not a Tuesday", "Tuesday", "not a Tuesday"),
        ("14.0", "14", "14"),
        ("yes", "Yes", "Yes"),
    ],
)
def test_a_date_is_asked_for_in_three_ways(answer, gold, spelled):
    assert normalizer("calendar_arithmetic", {"answer": gold})(answer) == spelled


@pytest.mark.parametrize("answer", ["The word is CLOWN", "It is CLOWN", "Word: CLOWN"])
def test_a_word_may_be_presented(answer):
    assert normalizer("figlet_font", {"answer": "CLOWN"})(answer) == "CLOWN"


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("ON", "on"),
        ("The light is on", "on"),
        ("Status: on", "on"),
        ("not on", "not on"),
    ],
)
def test_the_light_is_said_in_one_word(answer, right):
    assert normalizer("acre", {"answer": "on"})(answer) == right
