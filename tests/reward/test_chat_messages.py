"""The text of chat messages has the thinking that a server split off."""

import pytest

from rg_env.reward.chat_messages import THINKING_FIELDS, completion_text


@pytest.mark.parametrize("name", THINKING_FIELDS)
def test_thinking_that_was_split_off_belongs_to_the_text(name):
    message = {name: "5?", "content": "<answer>6</answer>"}
    assert completion_text([message]) == "<think>5?</think><answer>6</answer>"
    assert completion_text([message | {name: None}]) == "<answer>6</answer>"


def test_a_completion_without_messages_or_content_is_an_empty_text():
    assert completion_text("5") == "5"
    assert completion_text([]) == completion_text([{"content": None}]) == ""
