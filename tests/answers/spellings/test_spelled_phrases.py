"""One thing, said in a few more words, is that thing."""

import pytest

from rg_env.answers.spellings.spelled_phrases import SPELLINGS

ENTRY = {"answer": "abc"}


@pytest.mark.parametrize(
    ("task", "answer", "right"),
    [
        ("acre", "The light is on", "on"),
        ("acre", "ON", "on"),
        ("acre", "The detector light will stay off", "off"),
        ("acre", "Status: undetermined", "undetermined"),
        ("tsumego", "Black B4", "B4"),
        ("tsumego", "Black plays at b4", "B4"),
        ("tsumego", "The best move is B-4", "B4"),
        ("tsumego", "(B, 4)", "B4"),
        ("string_manipulation", "Final string: **bca**", "bca"),
        ("spell_backward", 'The reversed word is: "cba"', "cba"),
        ("family_relationships", "Relationship: `son`", "son"),
    ],
)
def test_only_the_thing_is_left(task, answer, right):
    assert SPELLINGS[task](answer, ENTRY) == right
    assert SPELLINGS[task](right, ENTRY) == right


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("acre", "on or off"),
        ("acre", "not on"),
        ("acre", "The light is not on"),
        ("acre", "The light was on, then off"),
        ("tsumego", "White B4"),
        ("tsumego", "B4 or C4"),
        ("tsumego", "B4 C4"),
        ("tsumego", "not B4"),
        ("tsumego", "B444"),
        ("string_manipulation", "bca: abc"),
        ("string_manipulation", "Not the string: abc"),
    ],
)
def test_what_says_more_stays_as_it_is(task, answer):
    assert SPELLINGS[task](answer, ENTRY) == answer


def test_a_right_answer_with_a_colon_is_not_cut():
    entry = {"answer": "The word: go."}
    assert SPELLINGS["emoji_mystery"]("The word: go.", entry) == "The word: go."
