"""What a model thought is put back before what it answered."""

from types import SimpleNamespace

import pytest

from rg_env.inference.chat_replies import whole_text
from rg_env.scoring.extraction import extract_answer


def text_of(content, end="stop", *, thinking_open=False, **message):
    told = SimpleNamespace(content=content, **message)
    choice = SimpleNamespace(message=told, finish_reason=end)
    return whole_text(choice, thinking_open=thinking_open)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_thinking_that_a_parser_took_out_is_put_back(name):
    text = text_of("\n<answer>4</answer>", **{name: "2 + 2\nis 4"})
    assert text == "<think>2 + 2\nis 4</think>\n<answer>4</answer>"
    assert extract_answer(text, thinking_open=False).answer == "4"


def test_an_answer_within_the_thinking_is_not_the_answer():
    text = text_of("<answer>4</answer>", reasoning="perhaps <answer>5</answer>?")
    assert extract_answer(text, thinking_open=False).answer == "4"


def test_thinking_that_the_prompt_has_begun_is_not_begun_again():
    text = text_of("<answer>4</answer>", thinking_open=True, reasoning="hm")
    assert text == "hm</think><answer>4</answer>"
    assert extract_answer(text, thinking_open=True).answer == "4"


def test_thinking_that_was_cut_is_not_ended():
    text = text_of(None, "length", reasoning="and then <answer>4</answer>")
    assert text == "<think>and then <answer>4</answer>"
    assert extract_answer(text, thinking_open=False).answer is None


@pytest.mark.parametrize("reasoning", [None, "", [], {"text": "t"}])
def test_a_reply_without_thinking_is_its_content(reasoning):
    assert text_of("<answer>4</answer>", reasoning=reasoning) == "<answer>4</answer>"


def test_thinking_that_is_in_the_content_as_well_is_not_said_twice():
    content = "<think>hm</think><answer>4</answer>"
    assert text_of(content, reasoning="hm") == content
