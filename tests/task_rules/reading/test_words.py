"""A word that the question names is that word in any case."""

import pytest

from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.reading.words import in_any_case
from rg_env.task_rules.table import rules_of


@pytest.mark.parametrize("answer", ["yes", "YES", "Yes"])
def test_the_right_word_in_another_case_is_the_right_word(answer):
    assert in_any_case(answer, {"answer": "Yes"}) == "Yes"


@pytest.mark.parametrize("answer", ["1 - 0", "True-1", "True!-1"])
def test_a_verdict_with_which_something_is_computed_is_none(answer):
    entry = {"answer": "True", "question": "1. Does it halt?"}
    assert rules_of("game_of_life_halting").notation(answer, entry) == answer


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
        *("Yes, it does not follow", "No, it follows", "Yes or no", "Yes, no"),
        *("Not yes", "Yes, if pigs fly", "It follows", "Maybe yes", "Yes but false"),
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


@pytest.mark.parametrize(
    ("answer", "spelled"),
    [
        ("melon -> nolem", "nolem"),
        ("melon \u2192 n-o-l-e-m", "nolem"),
        ("n-o-l-e-m", "nolem"),
        ("n o l e m", "nolem"),
        ("n, o, l, e, m", "nolem"),
        ("no-lem", "no-lem"),
        ("n-o-l e-m", "n-o-l e-m"),
        ("lemon -> nolem", "lemon -> nolem"),
        ("melon -> nolem -> melon", "melon -> nolem -> melon"),
    ],
)
def test_a_word_may_be_spelled_letter_by_letter_or_behind_an_arrow(answer, spelled):
    entry = {"answer": "nolem", "metadata": {"word": "melon"}}
    assert rules_of("spell_backward").notation(answer, entry) == spelled


SENTENCE = '"Come in," said Ann to-day.'


@pytest.mark.parametrize(
    "answer",
    [
        *("Come in, said Ann to-day", "\u201cCome in,\u201d said Ann to-day."),
        *('"Come in" said Ann to-day!', "['Come', 'in', 'said', 'Ann', 'to-day.']"),
    ],
)
def test_a_sentence_in_its_order_is_right_whatever_its_punctuation(answer):
    entry = {"answer": SENTENCE}
    assert rules_of("sentence_reordering").notation(answer, entry) == SENTENCE


@pytest.mark.parametrize(
    "answer",
    [
        *("Ann said Come in to-day", "Come in, said Ann", "Come in said Ann to day"),
        *("Come in, said Ann to+day", "Come in, said Ann today"),
        *("Come in said Ann to-day or not", "come in said Ann to-day"),
        *("~~Come in, said Ann to-day~~", "\u2260 Come in, said Ann to-day"),
        *("!Come in, said Ann to-day", "\u00acCome in, said Ann to-day"),
    ],
)
def test_other_words_or_another_order_stay_as_they_are(answer):
    entry = {"answer": SENTENCE}
    assert rules_of("sentence_reordering").notation(answer, entry) == answer


@pytest.mark.parametrize(
    "answer",
    ["When it rains, we stay.", "WHEN IT RAINS WE STAY!", "When it rains; we stay"],
)
def test_a_decrypted_text_may_have_punctuation(answer):
    entry = {"answer": "WHEN IT RAINS WE STAY"}
    assert rules_of("caesar_cipher").notation(answer, entry) == entry["answer"]


@pytest.mark.parametrize("answer", ["WHENIT RAINS WE STAY", "WHEN IT RAINS, WE"])
def test_a_decrypted_text_has_the_words_of_the_encrypted_one(answer):
    entry = {"answer": "WHEN IT RAINS WE STAY"}
    assert rules_of("caesar_cipher").notation(answer, entry) != entry["answer"]


@pytest.mark.parametrize(
    "answer", ['"Come home', "Come home", '"Come home."', "'Come home.'"]
)
def test_a_hidden_sentence_is_found_with_its_quotes_or_without(answer):
    entry = {"answer": '"Come home.'}
    assert rules_of("emoji_mystery").notation(answer, entry) == entry["answer"]


@pytest.mark.parametrize("answer", ['"Come, home.', "come home.", "Come home. Now", ""])
def test_a_hidden_sentence_is_found_to_the_letter(answer):
    assert (
        rules_of("emoji_mystery").notation(answer, {"answer": '"Come home.'}) == answer
    )
