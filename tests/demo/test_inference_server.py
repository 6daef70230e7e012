"""The simulated policy server, asked over real HTTP by the host's own clients."""

import asyncio
import contextlib
import json
import math

import aiohttp
import pytest
from atroposlib.envs.server_handling.openai_server import OpenAIServer
from atroposlib.envs.server_handling.server_baseline import APIServerConfig
from atroposlib.envs.server_handling.sglang_server import SGLangServer
from atroposlib.envs.server_handling.vllm_server import VLLMServer

from rg_env.demo.answer_key import AnswerKey
from rg_env.demo.chat_tokenizer import (
    TOKENIZER_FOLDER,
    build_prompt,
    load_tokenizer,
)
from rg_env.demo.http_app import serve_app
from rg_env.demo.inference_server import InferenceServer, build_app
from rg_env.demo.model import PolicyModel
from rg_env.demo.policy import KeyEntry, PolicyProfile
from rg_env.inference.probe import PROBE_TOKENS
from rg_env.inference.request_failures import RequestFailedError
from rg_env.inference.routes import read_completions

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


@contextlib.asynccontextmanager
async def serving(profile=ALWAYS_RIGHT, seed=0):
    model = PolicyModel(AnswerKey(known=[ENTRY]), profile, seed)
    async with serve_app(build_app(InferenceServer(model))) as url:
        yield url


def ask_host(kind, call, profile=ALWAYS_RIGHT, **given):
    """Call a method of one of the host's clients, for a server of its own."""

    async def run():
        async with serving(profile) as url:
            config = APIServerConfig(
                base_url=f"{url}/v1",
                api_key="x",
                model_name=str(TOKENIZER_FOLDER),
                # Its own health check would be counted among the completions.
                health_check=False,
            )
            client = kind(config)
            reply = await getattr(client, call)(model="m", **given)
            await client.openai.close()
            return reply

    return asyncio.run(run())


def ask_tokens(kind, profile=ALWAYS_RIGHT, **given):
    call = "tokens_and_logprobs_completion"
    return ask_host(kind, call, profile, prompt=PROMPT, **given)


def ask(method, path, times=1, seed=0, **body):
    """Send a request to a server of its own; return the last status and all replies."""

    async def run():
        replies = []
        async with serving(seed=seed) as url, aiohttp.ClientSession(url) as http:
            for _ in range(times):
                async with http.request(method, path, **body) as response:
                    replies.append(await response.json())
            return response.status, replies

    return asyncio.run(run())


def texts_of(n=4, **how):
    body = {"prompt": PROMPT, "n": n, "max_tokens": 400}
    _, replies = ask("POST", "/generate", json=body, **how)
    return [text for reply in replies for text in reply["text"]]


NATIVE = pytest.mark.parametrize("kind", [VLLMServer, SGLangServer])


@NATIVE
@pytest.mark.parametrize("n", [1, 3])
def test_the_host_reads_n_completions_which_end_with_the_end_token(kind, n):
    prompt, tokens, logprobs, reasons = ask_tokens(kind, n=n, max_tokens=2000)
    assert TOKENIZER.decode(prompt, skip_special_tokens=False) == PROMPT
    assert all("stop" in str(reason) for reason in reasons)
    assert len(tokens) == len(logprobs) == len(reasons) == n
    for ids, values in zip(tokens, logprobs, strict=True):
        assert len(ids) == len(values) and ids.index(END_ID) == len(ids) - 1
        assert all(math.isfinite(value) and value <= 0 for value in values)


@NATIVE
def test_a_long_completion_is_cut_at_the_limit_without_end_token(kind):
    _, tokens, _, reasons = ask_tokens(kind, NEVER_ENDS, n=2, max_tokens=700)
    assert [len(ids) for ids in tokens] == [700, 700]
    assert not any(END_ID in ids for ids in tokens)
    assert all("length" in str(reason) for reason in reasons)


def test_both_native_dialects_say_the_same():
    vllm, sglang = (
        ask_tokens(kind, n=3, max_tokens=400) for kind in (VLLMServer, SGLangServer)
    )
    assert vllm[:3] == sglang[:3]


def test_the_host_reads_n_chats_and_n_texts_cut_at_the_limit():
    how = {"messages": MESSAGES, "n": 3, "max_tokens": 500}
    choices = ask_host(OpenAIServer, "chat_completion", **how).choices
    assert [choice.finish_reason for choice in choices] == ["stop"] * 3
    assert all("<answer>42</answer>" in choice.message.content for choice in choices)
    how = {"prompt": PROMPT, "n": 2, "max_tokens": 5}
    choices = ask_host(OpenAIServer, "completion", **how).choices
    assert [choice.finish_reason for choice in choices] == ["length"] * 2
    assert all(choice.text.startswith("<think>") for choice in choices)


def test_the_seed_the_order_and_the_choice_decide_a_completion_and_nothing_else():
    one, again, other = (texts_of(times=2, seed=seed) for seed in (1, 1, 2))
    assert one == again != other
    assert len({*one}) == 8
    assert texts_of(n=2) == texts_of(n=4)[:2]


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/generate", {"json": {"n": 1}}, "expected `prompt`"),
        ("/generate", {"json": {"prompt": [1, "2"]}}, "Expected `int`, got `str`"),
        ("/generate", {"json": {"prompt": [10**6]}}, "another tokenizer"),
        ("/generate", {"json": {"prompt": "x", "n": 0}}, "at `n`"),
        ("/generate", {"json": {"prompt": "x", "max_tokens": "9"}}, "`max_tokens`"),
        ("/generate", {"json": [1]}, "not a JSON object"),
        ("/generate", {"data": b"{"}, "not JSON"),
        ("/v1/completions", {"json": {"prompt": "x", "stream": True}}, "`stream`"),
        ("/v1/chat/completions", {"json": {"messages": []}}, "`messages`"),
    ],
)
def test_a_malformed_request_gets_400_and_the_reason(path, body, expected):
    status, (reply,) = ask("POST", path, **body)
    assert status == 400
    assert expected in reply["error"]["message"]


def test_health_models_and_version_answer():
    assert ask("GET", "/health")[0] == 200
    _, (models,) = ask("GET", "/v1/models")
    assert [model["id"] for model in models["data"]] == ["simulated-policy"]
    assert "simulated" in ask("GET", "/version")[1][0]["version"]


async def test_the_ledger_counts_every_completion_by_kind_and_is_named_simulated():
    async with serving() as url, aiohttp.ClientSession(url) as http:
        for prompt in (PROMPT, PROMPT, "hi"):
            body = {"prompt": prompt, "n": 3, "max_tokens": 2000}
            async with http.post("/generate", json=body) as response:
                await response.read()
        async with http.get("/stats") as response:
            stats = await response.json()
    assert stats["simulated"] is True
    assert (stats["requests"], stats["completions"]) == (3, 9)
    assert stats["unknown_questions"] == 1
    assert stats["kinds"] == {"right": 6, "guess": 3}


@pytest.mark.parametrize(("max_tokens", "count"), [(PROBE_TOKENS, 0), (100, 1)])
def test_an_unknown_question_is_counted_and_said_but_of_a_probe(
    max_tokens, count, logged
):
    key = AnswerKey(known=[ENTRY])
    model = PolicyModel(key)
    asyncio.run(model.generate("hi", 1, max_tokens))
    assert key.misses == model.counts()["unknown_questions"] == count
    assert logged.text.count("does not know a question") == count


def test_completions_hold_the_ids_and_logprobs_that_are_asked_for():
    def completed(**more):
        body = {"prompt": PROMPT, "n": 2, "max_tokens": 500, **more}
        _, (reply,) = ask("POST", "/v1/completions", json=body)
        choices = read_completions(json.dumps(reply).encode())
        return map(list, zip(*(choice[:3] for choice in choices), strict=True))

    ids = {"return_token_ids": True, "return_tokens_as_token_ids": True}
    tokens, logprobs, ends = completed(logprobs=0, **ids)
    assert tokens[0][-1] == END_ID and ends == ["stop"] * 2
    assert [len(row) for row in logprobs] == [len(row) for row in tokens]
    with pytest.raises(RequestFailedError, match="no token ids"):
        completed()
