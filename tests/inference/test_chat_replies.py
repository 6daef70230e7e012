"""What a model thought is put back before what it answered."""

import json
from types import SimpleNamespace

import pytest

from rg_env.answers.extraction import extract_answer
from rg_env.inference.chat_replies import read_chat, usable_choices, whole_text


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


def chat_body(*choices, **more):
    built = [
        {"index": 0, "finish_reason": end, "message": {"role": "assistant", **message}}
        for message, end in choices
    ]
    return {"id": "1", "choices": built or None, **more}


def choices_in(body):
    return usable_choices(read_chat(json.dumps(body).encode()))


SAYS = {"content": "<answer>4</answer>"}
OVERLOADED = {"message": "backend overloaded", "code": 502}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": OVERLOADED}, "an error in the place of.*backend overloaded"),
        (chat_body(), "no chat completion"),
        ([1, 2], "no chat completion"),
        (None, "no chat completion"),
        ("hello", "no chat completion"),
        (chat_body(({"content": None}, "content_filter")), "content_filter"),
        (chat_body((SAYS, "content_filter")), "content_filter"),
        (chat_body(({"content": None}, "stop")), "no content"),
    ],
)
def test_a_reply_without_what_the_model_wrote_is_no_answer_of_the_model(body, said):
    with pytest.raises(ValueError, match=said):
        choices_in(body)


@pytest.mark.parametrize(
    ("message", "end", "text"),
    [
        ({"content": None, "refusal": "I must not"}, "stop", "I must not"),
        ({"content": None, "reasoning": "hm"}, "stop", "<think>hm</think>"),
        ({"content": None}, "length", ""),
        ({"content": ""}, "stop", ""),
        ({"content": [{"type": "text", "text": "<answer>"}, {"text": "4"}]}, "stop",
         "<answer>4"),
    ],
)  # fmt: skip
def test_what_the_model_wrote_is_used_in_whatever_field_it_is(message, end, text):
    (choice,) = choices_in(chat_body((message, end)))
    assert whole_text(choice, thinking_open=False) == text


def test_of_several_choices_those_that_were_withheld_are_left_out():
    withheld = ({"content": None}, "content_filter")
    assert len(choices_in(chat_body((SAYS, "stop"), withheld))) == 1
