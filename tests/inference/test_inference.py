"""Completions from the servers: whole, as many as asked for, or a failure."""

import asyncio
import re

import pytest

from rg_env import patience
from rg_env.inference.completions import Sampling, _as_array
from rg_env.inference.inference import MOST_ENDS
from rg_env.inference.prompts import render_prompt
from rg_env.inference.request_failures import RequestFailedError
from tests.support.odd_servers import openai_endpoint, serving
from tests.support.parts import RIGHT, build_env, vllm_reply, vllm_server

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(patience, "COMPLETION_FIRST_PAUSE_S", 0.02)


def sampled(server, kind="vllm", n=2, max_tokens=50, left=()):
    """Sample from a server, as long as replies are left; return the newest, counts."""

    async def run():
        async with server as url:
            env = build_env(url, kind)
            prompt = render_prompt(env.tokenizer, env._requests.messages("2 + 2?"))
            sampling = Sampling(max_tokens, 1.0, 1.0, "train")
            try:
                made = await env._inference.generate(prompt, n, sampling)
                while left:
                    made = await env._inference.generate(prompt, n, sampling)
                return prompt, made, env._events()
            finally:
                await env.close()

    return asyncio.run(run())


def completions(reply, **how):
    return sampled(vllm_server(reply), **how)[:2]


def made_with(*replies):
    """Sample until all replies were given; return what the environment counted."""
    left = list(replies)
    return sampled(vllm_server(lambda body: left.pop(0)), left=left)[2]


def chatted(*replies, n=2):
    """Sample once from an endpoint that chats."""
    odd = openai_endpoint(lambda body: left.pop(0))
    left = list(replies)
    return sampled(serving(odd), "openai", n)


def test_missing_choices_are_queried_for_again_and_surplus_ones_left_out():
    wanted = []

    def reply(body):
        wanted.append(body["n"])
        return vllm_reply([RIGHT] * (1 if len(wanted) < 3 else 5))

    _, made = completions(reply, n=3)
    assert len(made) == 3 and wanted == [3, 2, 1]


@pytest.mark.parametrize("ids", [["12", 3], ["word"], [1.5], [None, 2], [2**70]])
def test_a_token_that_is_no_whole_number_is_not_made_one(ids):
    with pytest.raises(RequestFailedError, match="whole number"):
        _as_array(ids)


def test_too_few_choices_again_and_again_are_a_failure():
    with pytest.raises(RequestFailedError, match="3 of 4"):
        completions(lambda body: vllm_reply([RIGHT]), n=4)


def test_a_completion_that_is_too_long_is_cut_and_counts_as_truncated():
    prompt, made = completions(
        lambda body: vllm_reply(["word " * 100] * 2), max_tokens=10
    )
    for completion in made:
        assert len(completion.tokens) == len(prompt.tokens) + 10
        assert len(completion.masks) == len(completion.logprobs)
        assert completion.finish_reason == "length"


# -- why completions ended -------------------------------------------------------------


def test_an_end_that_nobody_knows_is_used_counted_and_named_once(logged):
    replies = [vllm_reply([RIGHT] * 2, finish_reason="exploded") for _ in range(3)]
    assert made_with(*replies)["finish_reason_exploded"] == 6
    assert logged.text.count("finish_reason 'exploded', which is not known") == 1


def test_ends_are_counted_by_a_bounded_number_of_names():
    words = [str(i) * 100 for i in range(3 * MOST_ENDS)]
    events = made_with(*(vllm_reply([RIGHT] * 2, finish_reason=w) for w in words))
    names = [name for name in events if name.startswith("finish_reason_")]
    assert len(names) == MOST_ENDS + 1
    assert max(map(len, names)) < 50 and events["finish_reason_other"] > 0


# -- prompts ---------------------------------------------------------------------------


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


@pytest.mark.parametrize("tag", ["<think>", "[THINK]", "<|START_THINKING|>"])
def test_a_template_that_opens_the_thinking_is_noticed(tag):
    assert not render_prompt(Template(), []).thinking_open
    opening = Template()
    opening.text = f"hi{tag}\n"
    assert render_prompt(opening, []).thinking_open


# -- chats -----------------------------------------------------------------------------


def choices(*messages, end="stop"):
    rows = [{"message": m, "finish_reason": end, "index": 0} for m in messages]
    return {"id": "1", "object": "chat.completion", "created": 0, "choices": rows}


SAID = {"role": "assistant", "content": RIGHT}


def test_an_endpoint_of_text_gives_tokens_of_our_own_and_no_logprobs():
    prompt, made, _ = chatted(choices(SAID, SAID))
    assert len(made) == 2
    for completion in made:
        assert completion.logprobs is None and completion.text == RIGHT
        assert completion.tokens[: len(prompt.tokens)] == list(prompt.tokens)
        assert len(completion.tokens) == len(completion.masks) > len(prompt.tokens)


NO_ANSWERS = {
    "an error with status 200": ({"error": {"message": "no quota"}}, "no quota"),
    "null": (None, "null"),
    "a list": ([], "[]"),
    "no choices": (choices(), "0 completions"),
    "no message": (choices(None), "without completions"),
    "a filter": (choices({"content": None}, end="content_filter"), "content_filter"),
    "a filter and words": (choices(SAID, end="content_filter"), "content_filter"),
    "no content": (choices({"content": None}), "no content"),
    "content of no text": (choices({"content": {"text": RIGHT}}), "no content"),
}


@pytest.mark.parametrize("case", NO_ANSWERS)
def test_what_is_no_answer_is_a_failed_request_with_its_reason(case):
    reply, said = NO_ANSWERS[case]
    with pytest.raises(RequestFailedError, match=re.escape(said)):
        chatted(*[reply] * 3, n=1)


def test_one_filtered_choice_is_asked_again_and_is_no_wrong_answer():
    filtered = choices(SAID, SAID)
    filtered["choices"][0]["finish_reason"] = "content_filter"
    _, made, events = chatted(filtered, choices(SAID))
    assert [c.text for c in made] == [RIGHT] * 2
    assert events["failed_requests_finish_reason_content_filter"] == 1


PARTS = [{"type": "thinking", "thinking": []}, {"type": "text", "text": RIGHT}]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": ""}, ""),
        ({"content": PARTS}, RIGHT),
        ({"content": None, "refusal": "I must not"}, "I must not"),
        ({"content": None, "reasoning": "hm"}, "<think>hm</think>"),
    ],
)
def test_what_the_model_wrote_is_read_in_whatever_field_it_is(message, text):
    _, made, _ = chatted(choices(message), n=1)
    assert made[0].unusable is None and made[0].text == text


def test_a_model_whose_tokens_are_used_up_by_silent_thinking_has_answered():
    _, made, _ = chatted(choices({"content": None}, end="length"), n=1)
    assert (made[0].text, made[0].finish_reason) == ("", "length")
