"""Completions from the servers: whole, as many as asked for, or a failure."""

import asyncio

import pytest
from aiohttp import web
from parts import (
    RIGHT,
    WRONG,
    build_env,
    vllm_reply,
    vllm_server,
)

from rg_env import patience
from rg_env.inference.generation import InferenceFailed, Sampling, _as_array
from rg_env.inference.prompts import render_prompt
from rg_env.simulation.inference_server import serve_app

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(patience, "COMPLETION_FIRST_PAUSE_S", 0.02)


def completions(reply, n=2, max_tokens=50, kind="vllm"):
    """Ask a server that answers as told for completions."""

    async def run():
        async with vllm_server(reply) as url:
            env = build_env(url, kind)
            try:
                messages = env._requests.messages("2 + 2?")
                prompt = render_prompt(env.tokenizer, messages)
                sampling = Sampling(max_tokens, 1.0, 1.0, "train")
                made = await env._inference.generate(prompt, n, sampling)
                return prompt, made
            finally:
                await env.close()

    return asyncio.run(run())


def test_completions_carry_tokens_masks_and_logprobs_of_one_length():
    prompt, made = completions(lambda body: vllm_reply([RIGHT, WRONG]))
    assert [c.text for c in made] == [RIGHT, WRONG]
    for completion in made:
        begin = len(prompt.tokens)
        assert completion.tokens[:begin] == list(prompt.tokens)
        assert completion.masks[:begin] == [-100] * begin
        assert completion.masks[begin:] == completion.tokens[begin:]
        assert len(completion.logprobs) == len(completion.tokens)


def test_the_prompt_is_what_the_server_is_sent():
    bodies = []

    def reply(body):
        bodies.append(body)
        return vllm_reply([RIGHT] * body["n"])

    prompt, _ = completions(reply)
    assert bodies[0]["prompt"]["prompt_token_ids"] == list(prompt.tokens)
    assert (bodies[0]["n"], bodies[0]["max_tokens"]) == (2, 50)


def test_missing_choices_are_asked_for_again():
    wanted = []

    def reply(body):
        wanted.append(body["n"])
        return vllm_reply([RIGHT])

    _, made = completions(reply, n=3)
    assert len(made) == 3 and wanted == [3, 2, 1]


@pytest.mark.parametrize("ids", [["12", 3], ["word"], [1.5], [None, 2], [2**70]])
def test_a_token_that_is_no_whole_number_is_not_made_one(ids):
    with pytest.raises(TypeError, match="whole number"):
        _as_array(ids)


def test_too_few_choices_again_and_again_are_a_failure():
    with pytest.raises(InferenceFailed, match="3 of 4"):
        completions(lambda body: vllm_reply([RIGHT]), n=4)


def test_surplus_choices_are_left_out():
    _, made = completions(lambda body: vllm_reply([RIGHT] * 5))
    assert len(made) == 2


@pytest.mark.parametrize("logprob", [float("nan"), float("-inf")])
def test_a_completion_with_a_logprob_that_is_no_number_is_not_used(logprob):
    replies = [vllm_reply([RIGHT] * 2), vllm_reply([WRONG] * 2, logprob=logprob)]
    _, made = completions(lambda body: replies.pop())
    assert [c.text for c in made] == [RIGHT, RIGHT]


def test_a_completion_that_is_too_long_is_cut_and_counts_as_truncated():
    prompt, made = completions(
        lambda body: vllm_reply(["word " * 100] * 2), max_tokens=10
    )
    for completion in made:
        assert len(completion.tokens) == len(prompt.tokens) + 10
        assert len(completion.masks) == len(completion.logprobs)
        assert completion.finish_reason == "length"


MALFORMED = {
    "no fields": {},
    "other fields": {"text": "hello"},
    "null": {"logprobs": None, "finish_reasons": None},
    "a list": [],
    "no such reason": vllm_reply([RIGHT, RIGHT], finish_reason="exploded"),
    "status 500": 500,
    "status 404": 404,
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_reply_that_cannot_be_used_is_a_failed_request(case):
    with pytest.raises(InferenceFailed):
        completions(lambda body: MALFORMED[case])


class Template:
    """A tokenizer whose template puts a BOS, as its encoding does."""

    bos_token_id = 1
    text = "<s>hi"

    def apply_chat_template(self, messages, tokenize, add_generation_prompt):
        assert not tokenize and add_generation_prompt
        return self.text

    def encode(self, text, add_special_tokens):
        return [1, 1, 7, 8]


def test_a_double_bos_counts_once():
    assert list(render_prompt(Template(), []).tokens) == [1, 7, 8]


def test_a_template_that_opens_the_thinking_is_noticed():
    assert not render_prompt(Template(), []).thinking_open
    opening = Template()
    opening.text = "hi<think>\n"
    assert render_prompt(opening, []).thinking_open


def test_an_endpoint_of_text_gives_tokens_of_our_own_and_no_logprobs():
    async def chat(request):
        body = await request.json()
        choices = [
            {
                "index": i,
                "message": {"role": "assistant", "content": RIGHT},
                "finish_reason": "stop",
            }
            for i in range(body["n"])
        ]
        reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
        return web.json_response({**reply, "choices": choices})

    async def run():
        app = web.Application()
        app.add_routes([web.post("/v1/chat/completions", chat)])
        async with serve_app(app) as url:
            env = build_env(url, "openai")
            try:
                prompt = render_prompt(env.tokenizer, env._requests.messages("?"))
                sampling = Sampling(50, 1.0, 1.0, "train")
                return prompt, await env._inference.generate(prompt, 2, sampling)
            finally:
                await env.close()

    prompt, made = asyncio.run(run())
    assert len(made) == 2
    for completion in made:
        assert completion.logprobs is None and completion.text == RIGHT
        assert completion.tokens[: len(prompt.tokens)] == list(prompt.tokens)
        assert len(completion.tokens) == len(completion.masks) > len(prompt.tokens)
