"""A word that the question names is that word in any case."""

import pytest

from rg_env.answers.spellings.spelled_words import in_any_case


@pytest.mark.parametrize("answer", ["yes", "YES", "Yes"])
def test_the_right_word_in_another_case_is_the_right_word(answer):
    assert in_any_case(answer, {"answer": "Yes"}) == "Yes"


@pytest.mark.parametrize("answer", ["no", "yes no", "yess", ""])
def test_any_other_text_stays_as_it_is(answer):
    assert in_any_case(answer, {"answer": "Yes"}) == answer
