"""A completion is of use or not, and what a model thought stands before its answer."""

from types import SimpleNamespace

import pytest

from rg_env.inference.completions import (
    check_some_usable,
    highest_id,
    whole_text,
    why_unusable,
)
from rg_env.inference.request_failures import RequestFailedError
from rg_env.scoring.extraction import extract_answer


def text_of(content, end="stop", *, thinking_open=False, **message):
    told = SimpleNamespace(content=content, **message)
    choice = SimpleNamespace(message=told, finish_reason=end)
    return whole_text(choice, thinking_open=thinking_open)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_thinking_that_a_parser_took_out_is_put_back(name):
    text = text_of("\n<answer>4</answer>", **{name: "2 + 2\n<answer>5</answer>?"})
    assert text == "<think>2 + 2\n<answer>5</answer>?</think>\n<answer>4</answer>"
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


# -- of use or not ---------------------------------------------------------------------


WHOLE = ([5, 6], [-0.5, -1.0])


@pytest.mark.parametrize(
    "end", ["stop", "length", "repetition", "tool_calls", "eos", {"type": "stop"}]
)
def test_an_end_of_the_models_making_is_of_use_whatever_it_is_called(end):
    assert why_unusable(*WHOLE, end) is None


ENDS = {"abort": "abort", "error": "error", "content_filter: X": "content_filter"}


@pytest.mark.parametrize("end", [*ENDS, None, ""])
def test_an_end_of_the_servers_making_leaves_half_a_completion(end):
    assert why_unusable(*WHOLE, end).said == f"finish_reason {ENDS.get(end, 'none')}"
    assert why_unusable(*WHOLE, {"type": end, "message": "m"}) is not None


@pytest.mark.parametrize("end", [7, ["stop"], {"type": ["stop"]}])
def test_an_end_that_is_no_word_is_none(end):
    assert why_unusable(*WHOLE, end) is not None


@pytest.mark.parametrize(
    ("ids", "logprobs", "why"),
    [
        ([], [], "no token"),
        ([5], [], "log-probability"),
        ([5, 6], [-1.0, None], "log-probability"),
        ([5], [float("nan")], "log-probability"),
        ([5], [float("-inf")], "log-probability"),
        ([5, 6], [-1.0, 5.0], "a log-probability above 0 (5)"),
        ([5, 1_000_000], [-1.0, -1.0], "the tokenizer does not have (1000000)"),
        ([-1], [-1.0], "the tokenizer does not have"),
    ],
)
def test_what_a_trainer_cannot_use_is_said(ids, logprobs, why):
    assert why in why_unusable(ids, logprobs, "stop", 999_999).said


def test_a_rounding_above_0_and_the_highest_id_are_of_use():
    assert why_unusable([999_999], [1e-4], "stop", 999_999) is None


def test_the_highest_id_of_a_tokenizer_is_found_also_where_ids_have_gaps():
    class Tokenizer:
        def get_vocab(self):
            return {"a": 0, "<added>": 7}

    assert highest_id(Tokenizer()) == 7
    assert highest_id(object()) is None


def test_one_completion_of_use_is_enough():
    check_some_usable(([5], [[5], [6]], [[-0.5], [-0.5]], ["abort", "stop"]))
    with pytest.raises(RequestFailedError, match="2 completions is usable: fin"):
        check_some_usable(([[5], []], [[-0.5], []], ["abort", "stop"]))
    with pytest.raises(RequestFailedError, match="0 completions"):
        check_some_usable(([], [], []))
