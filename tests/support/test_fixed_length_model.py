"""Completions of one length, and their JSON that is put together from pieces."""

import asyncio
import json

import orjson
import pytest

from rg_env.demo.chat_tokenizer import ChatTokenizer, build_prompt
from rg_env.demo.protocols import VLLM, Answer
from tests.support.fixed_length_model import FixedLengthModel, ToldAnswers

QUESTION = "2 + 2?"
PROMPT = build_prompt([("user", QUESTION)])
TOKENIZER = ChatTokenizer()


def generate(tokens, n=3, max_tokens=10_000, told=None):
    answers = ToldAnswers()
    if told is not None:
        answers.learn({"question": QUESTION, "answer": told})
    model = FixedLengthModel(tokens, answers)
    return asyncio.run(model.generate(PROMPT, n, max_tokens)), model


def shape(protocol, made):
    answer = Answer(PROMPT, TOKENIZER.encode(PROMPT), made)
    return json.loads(orjson.dumps(protocol({}, answer)))


@pytest.mark.parametrize("tokens", [10, 40, 300, 1500])
def test_every_completion_has_the_length_asked_for(tokens):
    made, _ = generate(tokens, told="a longer answer")
    reply = shape(VLLM, made)
    assert [generation.num_tokens for generation in made] == [tokens] * 3
    assert [len(ids) for ids in reply["token_ids"]] == [tokens] * 3
    assert [len(scored) for scored in reply["logprobs"]] == [tokens] * 3


@pytest.mark.parametrize("tokens", [17, 18, 120])
def test_tokens_and_text_of_a_completion_say_the_same(tokens):
    made, _ = generate(tokens, told="12, 13")
    reply = shape(VLLM, made)
    scored_ids = [int(next(iter(place[0]))) for place in reply["logprobs"][0]]
    assert scored_ids == reply["token_ids"][0]
    assert TOKENIZER.decode(scored_ids).startswith(reply["text"][0])
    if reply["finish_reasons"][0] == "stop":
        assert TOKENIZER.decode(scored_ids) == reply["text"][0] + "<|im_end|>"
        assert reply["text"][0].endswith("</think>\n<answer>12, 13</answer>")
    assert reply["finish_reasons"][0] == "stop" or tokens < 120


def answers_of(made):
    return [g.text.split("<answer>")[1].removesuffix("</answer>") for g in made]


def test_every_other_answer_is_right_once_it_was_told():
    made, model = generate(120, n=4)
    assert answers_of(made) == ["0", "1", "2", "3"]
    assert model.counts() == {"unknown_questions": 1}
    made, model = generate(120, n=4, told="four")
    assert answers_of(made) == ["four", "1", "four", "3"]
    assert model.counts() == {"unknown_questions": 0}
