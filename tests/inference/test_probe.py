"""A probe finds the route of a server, or names the faults of each route."""

import asyncio
import contextlib

import pytest
from transformers import AutoTokenizer

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.inference.client import Client
from rg_env.inference.completions import Sampling
from rg_env.inference.connection import RequestFailedError
from rg_env.inference.probe import NO_ROUTE, ProbeRequest
from rg_env.inference.prompts import Prompt
from rg_env.inference.protocols import CHAT
from tests.support.odd_servers import (
    HTML,
    MODEL,
    Odd,
    chat,
    completions,
    openai_endpoint,
    recorded,
    refusal,
    serving,
    stock_vllm,
    with_changes,
)
from tests.support.parts import (
    RIGHT,
    TOKENIZER,
    env_config,
    server_config,
    sglang_reply,
    vllm_reply,
)

pytestmark = pytest.mark.slow

PROMPT = [5, 6, 7]
IDS = recorded("ids")[1]["choices"]
KINDS = ["vllm", "sglang", "openai", "trl"]


@contextlib.asynccontextmanager
async def client_at(odd, kind="openai", *, trains=True):
    """Yield a client of an odd server; it is probed for two completions."""
    async with serving(odd) as url:
        config = server_config(url, kind, model_name=MODEL, health_check=False)
        client = Client(config)
        client.tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
        client.needs_tokens = trains
        messages = [{"role": "user", "content": "2 + 2?"}]
        prompt = Prompt(messages, PROMPT, False)
        client.probe_request = ProbeRequest(prompt, {"n": 2})
        try:
            yield client
        finally:
            await client.close()


def probed(odd, kind="openai", **how):
    """Probe a server; return the path of its route, "a chat", or the error."""

    async def run():
        async with client_at(odd, kind, **how) as client:
            try:
                await client.probe()
            except Exception as error:  # noqa: BLE001 - compared by its words
                return error
            return "a chat" if client.route is CHAT else client.route.path

    return asyncio.run(run())


# -- the model of a reply --------------------------------------------------------------


def named(models, *names):
    """Return a vLLM with a list of models; its replies have these names in turn."""
    left = list(names)

    def complete(body):
        name = left.pop(0) if len(left) > 1 else left[0]
        return {**completions(body), "model": name}

    odd = stock_vllm(complete)
    rows = [{"id": name, "root": root} for name, root in models.items()]
    odd.replies["GET /v1/models"] = {"data": rows}
    return odd


@pytest.mark.parametrize("trains", [True, False])
@pytest.mark.parametrize(
    ("models", "name"),
    [
        ({MODEL: MODEL}, "qwen3-8b-2026-01-31"),
        ({MODEL: MODEL}, "/models/Qwen3-8B"),
        ({MODEL: "/policy", "policy": "/policy"}, "policy"),
        ({MODEL: "/policy"}, "/policy"),
        ({}, "policy"),
    ],
)
def test_a_server_may_have_another_name_for_the_model(models, name, trains):
    assert probed(named(models, name), "vllm", trains=trains) == "/v1/completions"


@pytest.mark.parametrize(
    ("models", "name", "trains"),
    [
        ({MODEL: MODEL}, "policy", False),
        ({MODEL: MODEL, f"{MODEL}-Base": f"{MODEL}-Base"}, f"{MODEL}-Base", True),
        ({"policy": "policy"}, "policy", True),
    ],
)
def test_a_reply_of_another_model_is_refused(models, name, trains):
    error = probed(named(models, name), "vllm", trains=trains)
    assert error.failure.setting == "openai.model_name"
    assert f"{name!r}, not of {MODEL!r}" in str(error)


async def test_a_server_that_changes_its_model_is_refused():
    async with client_at(named({}, "a", "a", "b"), "vllm") as client:
        await client.probe()
        sampling = Sampling(8, 1.0, 1.0, "train")
        assert await client.complete(client.probe_request.prompt, 2, sampling)
        with pytest.raises(RequestFailedError, match="of the model 'b'"):
            await client.complete(client.probe_request.prompt, 2, sampling)


# -- other servers ---------------------------------------------------------------------


def sglang_answer(body):
    if "input_ids" not in body:
        return 400, refusal("Either text or input_ids should be provided.")
    return sglang_reply([RIGHT] * body["sampling_params"]["n"])


def atropos_answer(body):
    if "prompt" not in body:
        return 500, "Internal Server Error"
    return vllm_reply([RIGHT] * body["n"])


SERVERS = {
    "stock vLLM": (stock_vllm, "/v1/completions"),
    "SGLang": (lambda: Odd({"POST /generate": sglang_answer}), "/generate"),
    "Atropos": (lambda: Odd({"POST /generate": atropos_answer}), "/generate"),
}


@pytest.mark.parametrize(
    ("server", "kind"),
    [(s, k) for s in SERVERS for k in KINDS if (s, k) != ("Atropos", "sglang")],
)
def test_a_server_of_any_kind_trains_whatever_type_is_set(server, kind):
    odd, path = SERVERS[server]
    assert probed(odd(), kind) == path


def test_a_server_without_token_ids_is_queried_as_a_chat_without_training(logged):
    assert probed(openai_endpoint(), "vllm", trains=False) == "a chat"
    assert logged.text.count("queried as a chat") == 1


# -- what lacks one thing --------------------------------------------------------------


NOT_THERE = "/generate: 404 Not Found"
LACKING = {
    "no ids": (with_changes("neither"), "/v1/completions: the reply has no token ids"),
    "no logprobs": (with_changes("ids alone"), "the reply has no log-probabilities"),
    "another form": (Odd({}, otherwise=(200, HTML)), "without completions: a web page"),
}


@pytest.mark.parametrize("case", LACKING)
def test_what_each_route_lacks_is_named(case):
    odd, said = LACKING[case]
    error = probed(odd)
    assert error.failure.kind == NO_ROUTE
    fault = str(error)
    assert said in fault and fault.count("/generate: ") == 1
    assert NOT_THERE in fault or case == "another form"


# -- the tokenizer ---------------------------------------------------------------------


OTHER_TEXTS = {
    "another text": {"text": "quite another"},
    "ids beyond ours": {"token_ids": [2**40] * 8},
}


@pytest.mark.parametrize("trains", [True, False])
@pytest.mark.parametrize("case", OTHER_TEXTS)
def test_another_tokenizer_ends_the_search_at_once(case, trains):
    odd = with_changes(**OTHER_TEXTS[case])
    odd.replies["POST /generate"] = sglang_answer
    error = probed(odd, "vllm", trains=trains)
    assert error.failure.setting == "env.tokenizer_name"
    assert odd.asked == ["POST /v1/completions"]


@pytest.mark.parametrize("text", [None, "", IDS[0]["text"][:9]])
def test_a_server_that_omits_text_or_its_end_trains(text):
    assert probed(with_changes(text=text)) == "/v1/completions"


# -- what says nothing of a route ------------------------------------------------------


async def test_a_server_that_ignores_n_gets_n_requests():
    odd = stock_vllm(lambda body: completions({**body, "n": 1}))
    async with client_at(odd) as client:
        for _ in range(2):  # as the framework does
            query = client.tokens_and_logprobs_completion(input_ids=PROMPT, n=3)
            _, ids, logprobs, ends = await query
    assert ids == [IDS[0]["token_ids"]] * 3 and len(logprobs) == len(ends) == 3
    assert [body["n"] for body in odd.bodies] == [2] + [1] * 6


UNSUPPORTED = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
    " 'max_completion_tokens' instead."
)


async def test_a_model_with_another_name_of_the_limit_gets_that_name():
    refused = (400, refusal(UNSUPPORTED, "unsupported_parameter", "max_tokens"))
    odd = openai_endpoint(lambda body: refused if "max_tokens" in body else chat(body))
    async with client_at(odd, trains=False) as client:
        await client.probe()
        for _ in range(2):
            found = await client.chat_completion(messages=[{}], n=3, max_tokens=9)
            assert len(found.choices) == 3
    limits = ["max_completion_tokens" in body for body in odd.bodies]
    assert limits == [False, True, True]


TELLING = {
    "the model": recorded("unknown model"),
    "the key": (401, refusal("Incorrect API key")),
    "the context": recorded("too long"),
    "a failure": (500, refusal("out of memory")),
    "a busy server": (429, refusal("later")),
}


@pytest.mark.parametrize("trains", [True, False])
@pytest.mark.parametrize("said", TELLING.values(), ids=list(TELLING))
def test_an_error_of_the_server_ends_the_search_for_a_route(said, trains):
    odd = stock_vllm(said)
    odd.replies["POST /v1/chat/completions"] = said
    error = probed(odd, "vllm", trains=trains)
    assert error.failure.status == said[0], error


# -- several kinds together ------------------------------------------------------------


def bodies_of(trains):
    """Have one environment query vLLM and SGLang; return the bodies of its requests."""
    ends = [stock_vllm(), Odd({"POST /generate": sglang_answer})]

    async def run():
        async with serving(ends[0]) as one, serving(ends[1]) as other:
            kinds = zip((one, other), ("openai", "sglang"), strict=True)
            configs = [
                server_config(url, kind, model_name=MODEL, health_check=False)
                for url, kind in kinds
            ]
            env = ReasoningGymEnv(env_config(), configs)
            if trains:
                env._servers.require_tokens()
            prompt = Prompt([{"role": "user", "content": "2 + 2?"}], PROMPT, False)
            how = Sampling(9, 1.0, 1.0, "train")
            await env._servers.generate(prompt, 2, how)
            probes = [each.probe() for each in env._servers.clients]
            await asyncio.gather(*probes)
            asking = [env._servers.generate(prompt, 2, how) for _ in range(4)]
            made = await asyncio.gather(*asking)
            await env.close()
            return made

    return [c for group in asyncio.run(run()) for c in group], [e.bodies for e in ends]


def test_servers_of_several_types_are_used_together():
    made, (vllm, sglang) = bodies_of(trains=True)
    assert all(completion.logprobs is not None for completion in made)
    assert {body["n"] for body in vllm} == {2} and "prompt" in vllm[-1]
    assert "input_ids" in sglang[-1]
    made, (vllm, sglang) = bodies_of(trains=False)
    assert {c.logprobs is None for c in made} == {True, False}
    assert all("messages" in body for body in vllm)
    assert all("input_ids" in body for body in sglang)
