"""Completions are usable, whole, and as many as requested."""

import asyncio
import json

import pytest

from rg_env.inference import server_health
from rg_env.inference.completions import Completion, Sampling, read_texts, read_tokens
from rg_env.inference.connection import RequestFailedError
from rg_env.inference.prompts import Prompt, Prompts, render_prompt
from rg_env.inference.protocols import ATROPOS, CHAT
from rg_env.reward.extraction import extract_answer
from tests.support.odd_servers import Odd, openai_endpoint, serving
from tests.support.parts import RIGHT, build_env, vllm_reply


class Vocabulary:
    """A tokenizer of 1,000 tokens."""

    def get_vocab(self):
        return {str(i): i for i in range(1000)}

    def decode(self, ids, **how):
        return ""


def why_unusable(ids, logprobs, end):
    completion = Completion(None, ids, logprobs, end)
    return read_tokens(Vocabulary(), [completion])[0].unusable


WHOLE = ([5, 6], [-0.5, -1.0])


@pytest.mark.parametrize(
    "end", ["stop", "length", "repetition", "tool_calls", "eos", {"type": "stop"}]
)
def test_a_completion_that_the_model_ended_is_usable(end):
    assert why_unusable(*WHOLE, end) is None


@pytest.mark.parametrize(
    ("end", "word"),
    [
        ("abort", "abort"),
        ("content_filter: RECITATION", "content_filter"),
        ({"type": "abort", "message": "m"}, "abort"),
        *((odd, "none") for odd in (None, 7, {"type": ["stop"]})),
    ],
)
def test_a_completion_that_the_server_aborted_is_unusable(end, word):
    why = why_unusable(*WHOLE, end)
    assert (why.kind, why.text) == (f"finish_reason_{word}", f"finish_reason {word}")


@pytest.mark.parametrize(
    ("ids", "logprobs", "why"),
    [
        ([], [], "no token"),
        ([5, 6], [-1.0, None], "a log-probability is missing"),
        ([5, 6], [-1.0], "a log-probability is missing"),
        ([5], [float("nan")], "a log-probability is missing or not finite"),
        ([5, 6], [-1.0, 5.0], "a log-probability above 0 (5)"),
        ([5, 1_000_000], [-1.0, -1.0], "the tokenizer does not have (1000000)"),
        ([5, -1], [-1.0, -1.0], "the tokenizer does not have (-1)"),
    ],
)
def test_an_unusable_completion_says_why(ids, logprobs, why):
    assert why in why_unusable(ids, logprobs, "stop").text


# -- the text of a chat ----------------------------------------------------------------


class Encoding:
    eos_token = None

    def __call__(self, texts, **how):
        return {"input_ids": [[*text.encode()] for text in texts]}


ANSWER, HM = "<answer>4</answer>", {"reasoning": "hm"}


@pytest.mark.parametrize(
    ("content", "more", "opened", "text", "answer"),
    [
        (ANSWER, {"reasoning_content": "a"}, False, f"<think>a</think>{ANSWER}", "4"),
        (ANSWER, HM, False, f"<think>hm</think>{ANSWER}", "4"),
        (ANSWER, HM, True, f"hm</think>{ANSWER}", "4"),
        (None, {**HM, "end": "length"}, False, "<think>hm", None),
        (None, {"reasoning": ANSWER, "end": "length"}, True, ANSWER, None),
        (f"<think>b</think>{ANSWER}", HM, False, f"<think>b</think>{ANSWER}", "4"),
        *((ANSWER, {"reasoning": r}, False, ANSWER, "4") for r in (None, "", [], {})),
    ],
)
def test_thinking_that_a_server_split_off_is_joined_again(
    content, more, opened, text, answer
):
    end = more.get("end", "stop")
    choice = {"message": {"content": content, **more}, "finish_reason": end}
    body = json.dumps({"choices": [choice]}).encode()
    read = CHAT.read(body, Prompt([], [1], opened))
    (made,) = read_texts(Encoding(), read)
    found = made.text
    assert found == text
    assert extract_answer(found, thinking_open=opened).answer == answer


# -- as many as requested --------------------------------------------------------------

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(server_health, "PAUSE_S", 0.02)


def sampled(server, kind="vllm", n=2, max_tokens=9999):
    """Sample from a server once."""

    async def run():
        async with serving(server) as url:
            env = build_env(url, kind)
            for each in env.server.servers:
                each.is_up = True  # these replies are all to groups
                each.route = CHAT if kind == "openai" else ATROPOS
            prompt = render_prompt(env.tokenizer, env._prompts.messages("2 + 2?"))
            sampling = Sampling(max_tokens, 1.0, 1.0, "train")
            try:
                return await env._servers.generate(prompt, n, sampling)
            finally:
                await env.close()

    return asyncio.run(run())


def vllm(reply):
    return Odd({"POST /generate": reply})


def completions(*replies, **how):
    """Sample once from a server of Atropos that gives these replies in turn."""
    left = list(replies)
    return sampled(vllm(lambda body: left.pop(0)), **how)


def chatted(*replies, **how):
    """Sample once from an endpoint that chats."""
    left = [{"choices": choices} for choices in replies]
    return sampled(openai_endpoint(lambda body: left.pop(0)), "openai", **how)


def said(message, end="stop"):
    return {"message": message, "finish_reason": end}


def test_missing_choices_are_requested_again_and_surplus_ones_dropped():
    wanted = []

    def reply(body):
        wanted.append(body["n"])
        return vllm_reply([RIGHT] * (2 if len(wanted) < 3 else 5))

    made = sampled(vllm(reply), n=5)
    assert len(made) == 5 and wanted == [5, 3, 1]


def test_too_few_choices_after_all_tries_are_a_failure():
    replies = [vllm_reply([RIGHT] * n) for n in (2, 2, 1)]
    with pytest.raises(RequestFailedError, match="5 of 6"):
        completions(*replies, n=6)


def test_a_completion_beyond_the_limit_is_truncated():
    made = completions(vllm_reply(["word " * 100] * 2), max_tokens=10)
    for completion in made:
        assert len(completion.tokens) == len(completion.logprobs) == 10
        assert completion.finish_reason == "length" and len(completion.text) < 99


SAID = {"content": RIGHT}


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        (said({"content": ""}), ""),
        (said({"content": None, "refusal": "I must not"}), "I must not"),
        (said({"content": None, "reasoning": "hm"}), "<think>hm</think>"),
        (said({"content": None}, "length"), ""),  # used up by silent thinking
        (said({"content": "\ud83d"}), "\ud83d"),
    ],
)
def test_the_whole_text_of_a_chat_is_read_from_any_field(choice, text):
    (made,) = chatted([choice], n=1, max_tokens=1)  # of its tokenizer, not of ours
    assert made.unusable is None and made.text == text
    assert made.finish_reason == choice["finish_reason"]


@pytest.mark.parametrize(
    ("choices", "why"),
    [
        ([said({"content": None})], "no content"),
        ([{"finish_reason": "stop"}], "without completions"),
        ([said(3)], "without completions"),
        ([said(SAID, "content_filter")], "finish_reason content_filter"),
        ([], "there is none"),
    ],
)
def test_a_chat_without_a_text_is_a_failure(choices, why):
    with pytest.raises(RequestFailedError, match=why):
        chatted(*[choices] * 3, n=1)


# -- prompts ---------------------------------------------------------------------------


class Template:
    """A tokenizer whose template adds a BOS, as its encoding does."""

    bos_token_id = 1

    def __init__(self):
        self.rendered = []

    def apply_chat_template(self, messages, **how):
        self.rendered.append(messages[-1]["content"][:9])
        return f"{messages[-1]['content']}{how.get('more', '')}"

    def encode(self, text, **how):
        return [1, 1, *text.encode()]


@pytest.mark.parametrize("size", [1, 9999])
def test_a_prompt_is_rendered_once_with_one_bos(size):
    async def run():
        messages = [{"role": "user", "content": "a" * size}]
        return [await prompts.render(messages) for _ in range(3)]

    tokenizer = Template()
    prompts = Prompts(tokenizer, {"more": "!"})
    first, *others = asyncio.run(run())
    assert others == [first] * 2 and len(tokenizer.rendered) == 1
    assert list(first.tokens) == [1, *b"a" * size, *b"!"]
