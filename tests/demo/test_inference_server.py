"""The simulated policy server, asked over real HTTP."""

import asyncio
import contextlib
import json

import aiohttp
import pytest

from rg_env.demo.chat_tokenizer import build_prompt, load_tokenizer
from rg_env.demo.inference_server import InferenceServer, build_app, serve_app
from rg_env.demo.model import AnswerKey, PolicyModel
from rg_env.demo.policy import KeyEntry, PolicyProfile
from rg_env.inference.completions import why_unusable
from rg_env.inference.routes import COMPLETIONS as ROUTE
from rg_env.inference.routes import Prompt

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
QUESTION = "What is 6 times 7?\nAnswer with a number."
MESSAGES = [
    {"role": "system", "content": "Think, then answer."},
    {"role": "user", "content": QUESTION},
]
PROMPT = build_prompt([(m["role"], m["content"]) for m in MESSAGES])
ENTRY = KeyEntry("products", QUESTION, "42", 0.1)
ALWAYS_RIGHT = PolicyProfile(
    mean_skill=0.9, skill_spread=0, sharpness=40, bad_format=0, unfinished=0, hedged=0
)
NEVER_ENDS = PolicyProfile(bad_format=0, unfinished=1, hedged=0)
TOKENIZER = load_tokenizer()
END_ID = TOKENIZER.token_to_id("<|im_end|>")
IDS = {"logprobs": 0, "return_token_ids": True, "return_tokens_as_token_ids": True}


@contextlib.asynccontextmanager
async def serving(profile=ALWAYS_RIGHT, seed=0):
    model = PolicyModel(AnswerKey(known=[ENTRY]), profile, seed)
    async with serve_app(build_app(InferenceServer(model))) as url:
        yield url


def ask(method, path, times=1, seed=0, profile=ALWAYS_RIGHT, **body):
    """Send a request to a server of its own; return the last status and all replies."""

    async def run():
        replies = []
        async with serving(profile, seed) as url, aiohttp.ClientSession(url) as http:
            for _ in range(times):
                async with http.request(method, path, **body) as response:
                    replies.append(await response.json())
            return response.status, replies

    return asyncio.run(run())


def tokens_of(profile=ALWAYS_RIGHT, **more):
    """Return the completions of a prompt, as our client reads them."""
    body = {"prompt": PROMPT, "n": 2, **IDS, **more}
    _, (reply,) = ask("POST", COMPLETIONS, profile=profile, json=body)
    prompt = Prompt([], [], False)
    return list(ROUTE.read(json.dumps(reply).encode(), prompt))


def test_completions_can_be_used_and_end_with_the_end_token():
    for choice in tokens_of(max_tokens=2000):
        assert why_unusable(choice) is None and choice.finish_reason == "stop"
        assert choice.tokens.index(END_ID) == len(choice.tokens) - 1
        assert "<answer>42</answer>" in choice.server_text


def test_a_long_completion_is_cut_at_the_limit_without_end_token():
    for choice in tokens_of(NEVER_ENDS, max_tokens=700):
        assert len(choice.tokens) == 700 and END_ID not in choice.tokens
        assert choice.finish_reason == "length"


def test_chats_are_answered():
    body = {"messages": MESSAGES, "n": 3, "max_tokens": 500}
    choices = ask("POST", CHAT, json=body)[1][0]["choices"]
    assert [choice["finish_reason"] for choice in choices] == ["stop"] * 3
    assert all("<answer>42</answer>" in c["message"]["content"] for c in choices)


def texts_of(n=4, **how):
    body = {"prompt": PROMPT, "n": n, "max_tokens": 400}
    _, replies = ask("POST", COMPLETIONS, json=body, **how)
    return [choice["text"] for reply in replies for choice in reply["choices"]]


def test_the_seed_the_order_and_the_choice_decide_a_completion_and_nothing_else():
    one, again, other = (texts_of(times=2, seed=seed) for seed in (1, 1, 2))
    assert one == again != other
    assert len({*one}) == 8
    assert texts_of(n=2) == texts_of(n=4)[:2]


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (COMPLETIONS, {"json": {"n": 1}}, "expected `prompt`"),
        (COMPLETIONS, {"json": {"prompt": [10**6]}}, "another tokenizer"),
        (COMPLETIONS, {"json": {"prompt": "x", "n": 0}}, "at `n`"),
        (COMPLETIONS, {"data": b"{"}, "not JSON"),
    ],
)
def test_a_malformed_request_gets_400_and_the_reason(path, body, expected):
    status, (reply,) = ask("POST", path, **body)
    assert status == 400
    assert expected in reply["error"]["message"]


async def test_every_completion_is_counted_by_kind_and_named_simulated():
    async with serving() as url, aiohttp.ClientSession(url) as http:
        for prompt, limit in (PROMPT, 2000), (PROMPT, 2000), ("hi", 2000), ("ho", 1):
            body = {"prompt": prompt, "n": 3, "max_tokens": limit}
            async with http.post(COMPLETIONS, json=body) as response:
                await response.read()
        async with http.get("/stats") as response:
            stats = await response.json()
    assert stats == {
        "requests": 3,
        "completions": 9,
        "unknown_questions": 1,
        "kinds": {"right": 6, "guess": 6},
    }
