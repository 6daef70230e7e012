"""A server is asked for token ids at the route that it has, and only a fit one."""

import asyncio
import contextlib
import math

import pytest
from odd_servers import (
    MODEL,
    Odd,
    completions,
    openai_endpoint,
    recorded,
    refusal,
    serving,
    stock_vllm,
)
from parts import ENTRY_OF_FOUR, TOKENIZER, Exact, env_config, server_config
from transformers import AutoTokenizer

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.errors import SettingError
from rg_env.inference.generation import Inference, Sampling
from rg_env.inference.native_servers import UnusableReplyError, client_of
from rg_env.inference.prompts import Prompt
from rg_env.inference.route_probe import NoRouteError
from rg_env.inference.server_look import ServerLook
from rg_env.inference.token_replies import LOGPROBS, TOKEN_IDS
from rg_env.inference.token_routes import url_of

pytestmark = pytest.mark.slow

PROMPT = [5, 6, 7]
SAMPLED = {"n": 3, "max_tokens": 8, "temperature": 0.5, "top_p": 0.9}
IDS = recorded("ids")[1]["choices"]


@contextlib.asynccontextmanager
async def client_at(odd, kind="openai"):
    async with serving(odd) as url:
        # The name of a `trl` server's model is the one of its tokenizer.
        model = TOKENIZER if kind == "trl" else MODEL
        config = server_config(url, kind, model_name=model, health_check=False)
        client = client_of(config)
        client.tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
        try:
            yield client
        finally:
            await client.close()


def asked(odd, kind="openai", times=1):
    """Ask for three completions; return the newest answer."""

    async def run():
        async with client_at(odd, kind) as client:
            for _ in range(times):
                answer = await client._tokens_and_logprobs_completion_wrapper(
                    model="m", input_ids=list(PROMPT), **SAMPLED
                )
            return answer

    return asyncio.run(run())


def fault_of(odd, kind="openai"):
    """Return why no route of a server is fit."""
    with pytest.raises(NoRouteError) as refused:
        asked(odd, kind)
    return refused.value


# -- a stock vLLM ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["openai", "vllm"])
def test_ids_and_logprobs_are_those_that_a_stock_vllm_sends(kind):
    prompt, ids, logprobs, ends = asked(stock_vllm(), kind)
    sent = [IDS[i % 2] for i in range(3)]
    assert prompt == PROMPT
    assert ids == [choice["token_ids"] for choice in sent]
    assert logprobs == [choice["logprobs"]["token_logprobs"] for choice in sent]
    assert ends == [choice["finish_reason"] for choice in sent]


def test_an_older_vllm_that_writes_ids_as_tokens_is_read_as_well():
    _, ids, logprobs, _ = asked(
        stock_vllm(complete=lambda b: completions(b, "ids as tokens"))
    )
    first = recorded("ids as tokens")[1]["choices"][0]["logprobs"]
    assert [f"token_id:{i}" for i in ids[0]] == first["tokens"]
    assert logprobs[0] == first["token_logprobs"]


def test_a_route_is_tried_once_and_then_asked_with_what_is_sampled():
    odd = stock_vllm()
    asked(odd, times=3)
    tried, *rest = odd.bodies
    assert tried["max_tokens"] < 9 and tried["n"] == 2
    assert len(rest) == 3 and rest[0] == rest[1]
    assert rest[0].items() >= {**SAMPLED, "prompt": PROMPT, "model": MODEL}.items()


def test_the_models_own_sampling_is_told_to_be_off():
    odd = stock_vllm()
    asked(odd)
    assert odd.bodies[-1]["top_k"] == -1 and odd.bodies[-1]["repetition_penalty"] == 1


def test_requests_that_come_together_wait_for_the_same_tries():
    odd = stock_vllm()

    async def run():
        async with client_at(odd) as client:
            asking = [
                client._tokens_and_logprobs_completion_wrapper(
                    input_ids=[5, 6], **SAMPLED
                )
                for _ in range(9)
            ]
            await asyncio.gather(*asking)

    asyncio.run(run())
    assert [body["n"] for body in odd.bodies] == [2] + [3] * 9


def test_a_server_that_came_back_with_another_route_is_asked_there():
    odd = stock_vllm()

    async def run():
        async with client_at(odd) as client:
            ask = client._tokens_and_logprobs_completion_wrapper
            before = await ask(input_ids=list(PROMPT), **SAMPLED)
            odd.replies["POST /generate"] = sglang_answer
            del odd.replies["POST /v1/completions"]
            return before, await ask(input_ids=list(PROMPT), **SAMPLED)

    before, after = asyncio.run(run())
    assert before[1][0] == IDS[0]["token_ids"] and after[1][0] == IDS[0]["token_ids"]
    assert odd.asked[-1] == "POST /generate"


# -- other servers ---------------------------------------------------------------------


def sglang_answer(body):
    ids = IDS[0]["token_ids"]
    both = zip(IDS[0]["logprobs"]["token_logprobs"], ids, strict=True)
    scored = [[logprob, token, None] for logprob, token in both]
    meta = {"output_token_logprobs": scored, "finish_reason": {"type": "length"}}
    result = {"text": IDS[0]["text"], "meta_info": meta}
    return [result] * body["sampling_params"]["n"]


def test_an_sglang_without_ids_in_its_completions_is_asked_in_its_own_way():
    odd = stock_vllm(complete=lambda body: completions(body, "neither"))
    odd.replies["POST /generate"] = sglang_answer
    _, ids, _, ends = asked(odd)
    assert ids == [IDS[0]["token_ids"]] * 3 and ends[0] == {"type": "length"}


def tokens_answer(body):
    scored = [{"logprob": p} for p in IDS[0]["logprobs"]["token_logprobs"]]
    choice = {
        "token_ids": IDS[0]["token_ids"],
        "logprobs": {"content": scored},
        "finish_reason": "length",
    }
    return {"choices": [choice] * body["sampling_params"]["n"]}


def test_tokens_in_and_tokens_out_is_the_last_way():
    odd = Odd({"POST /inference/v1/generate": tokens_answer})
    _, ids, logprobs, _ = asked(odd)
    assert ids[2] == IDS[0]["token_ids"]
    assert logprobs[2] == IDS[0]["logprobs"]["token_logprobs"]


@pytest.mark.parametrize("nested", [False, True])
def test_a_trl_that_takes_ids_trains_and_its_ends_are_told_from_the_tokens(nested):
    end = AutoTokenizer.from_pretrained(TOKENIZER).eos_token_id

    def answer(body):
        assert all(isinstance(token, int) for token in body["prompts"][0])
        rows = [[3, 4, end], [9] * body["max_tokens"], [3, 5]][: body["n"]]
        logprobs = [[[-0.5] if nested else -0.5 for _ in row] for row in rows]
        told = {"prompt_ids": body["prompts"], "completion_ids": rows}
        return {**told, "logprobs": logprobs}

    _, ids, logprobs, ends = asked(Odd({"POST /generate/": answer}), "trl")
    assert ids[0] == [3, 4, end] and logprobs[0] == [-0.5] * 3
    assert ends == ["stop", "length", "stop"]


def test_an_older_trl_is_missing_logprobs():
    odd = Odd({"POST /generate/": {"completion_ids": [[3], [4]]}})
    assert fault_of(odd, "trl").missing == LOGPROBS


# -- what lacks one thing --------------------------------------------------------------


def with_changes(name="ids", **changes):
    return stock_vllm(complete=lambda body: completions(body, name, **changes))


LACKING = {
    "no ids": (with_changes("neither"), TOKEN_IDS),
    "no logprobs": (with_changes("ids alone"), LOGPROBS),
    "too few logprobs": (with_changes(token_logprobs=[-1.0]), LOGPROBS),
    "a null among them": (with_changes(token_logprobs=[None] * 8), LOGPROBS),
    "no completions": (openai_endpoint(), None),
}


@pytest.mark.parametrize("case", LACKING)
def test_what_is_missing_is_named(case):
    odd, missing = LACKING[case]
    assert fault_of(odd).missing == missing


UNFIT = {
    "a logit": ({"token_logprobs": [7.5] * 8}, "above 0", "openai.base_url"),
    "no end": ({"finish_reason": None}, "no finish_reason", "openai.base_url"),
    "another prompt": ({"prompt_token_ids": [1]}, "tokens of the prompt", "openai."),
    "another text": ({"text": "quite another"}, "to our tokenizer", "env.tokenizer"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_what_would_be_wrong_to_learn_from_is_refused_with_the_setting(case):
    changes, said, field = UNFIT[case]
    odd = with_changes(**changes)
    if "prompt_token_ids" in changes:
        reply = completions({"prompt": [1], "n": 2, "model": MODEL})
        odd = stock_vllm(complete=lambda body: reply)
    fault = fault_of(odd)
    assert said in str(fault) and fault.field.startswith(field)


def test_a_server_that_ignores_n_is_asked_as_often(logged):
    odd = stock_vllm(complete=lambda body: completions({**body, "n": 1}))
    _, ids, logprobs, ends = asked(odd, times=2)
    assert ids == [IDS[0]["token_ids"]] * 3 and len(logprobs) == len(ends) == 3
    assert [body["n"] for body in odd.bodies] == [2] + [1] * 6
    assert "one completion whatever n is" in logged.text


def test_a_completion_that_was_broken_off_says_nothing_of_the_route():
    with pytest.raises(UnusableReplyError):
        asked(with_changes(finish_reason="abort"))


def test_a_server_that_makes_no_text_trains():
    assert asked(with_changes(text=None))[1][0] == IDS[0]["token_ids"]


def test_ids_beyond_our_tokenizer_are_blamed_on_it():
    fault = fault_of(with_changes(token_ids=[2**40] * 8))
    assert fault.field == "env.tokenizer_name"


def test_a_text_that_holds_its_end_back_is_of_the_same_tokens():
    asked(with_changes(text=IDS[0]["text"][:9]))


def test_a_model_that_is_not_there_is_no_matter_of_the_route():
    odd = stock_vllm(complete=lambda body: recorded("unknown model"))
    with pytest.raises(Exception, match="does not exist") as refused:
        asked(odd)
    assert refused.value.status == 404 and len(odd.bodies) == 1


def test_a_key_that_may_use_nothing_is_no_matter_of_the_route():
    odd = Odd({}, otherwise=(403, refusal("no access")))
    with pytest.raises(Exception, match="no access") as refused:
        asked(odd)
    assert refused.value.status == 403


def test_the_sentence_names_what_is_missing_and_where_it_was_asked():
    async def run():
        async with client_at(with_changes("neither")) as client:
            look = ServerLook(client.config.base_url, "openai", MODEL, "x", True)
            with pytest.raises(NoRouteError) as refused:
                await client.find_route()
            return await look.why_no_tokens(refused.value)

    said = asyncio.run(run())
    assert isinstance(said, SettingError)
    assert "(stock vLLM 0.32.0) returns no token ids" in str(said)
    assert "/v1/completions" in str(said) and "`process` and `evaluate`" in str(said)


# -- completions -----------------------------------------------------------------------


class OneServer:
    """As much of the framework's manager as one client needs."""

    def __init__(self, client):
        self.servers = [client]

    @contextlib.asynccontextmanager
    async def managed_server(self, tokenizer):
        from atroposlib.envs.server_handling.managed_server import ManagedServer

        yield ManagedServer(self.servers[0], tokenizer)


def test_a_completion_that_a_trainer_gets_is_what_the_server_said():
    async def run():
        async with client_at(stock_vllm()) as client:
            inference = Inference(OneServer(client), client.tokenizer, "openai")
            inference.trains = True
            prompt = Prompt([], PROMPT, False)
            return await inference.generate(prompt, 2, Sampling(8, 1.0, 1.0, "train"))

    for made, sent in zip(asyncio.run(run()), IDS, strict=True):
        assert made.tokens == [*PROMPT, *sent["token_ids"]]
        assert made.masks == [-100] * 3 + sent["token_ids"]
        assert made.logprobs == [1.0] * 3 + sent["logprobs"]["token_logprobs"]
        assert all(map(math.isfinite, made.logprobs))


@pytest.mark.parametrize("kind", ["openai", "vllm"])
def test_a_group_for_the_trainer_is_what_the_server_said(kind):
    async def run():
        async with serving(stock_vllm()) as url:
            config = server_config(url, kind, model_name=MODEL, health_check=False)
            env = ReasoningGymEnv(
                env_config(ensure_scores_are_not_same=False, group_size=2), [config]
            )
            env._inference.trains = True
            messages = env._requests.messages("2 + 2?")
            prompt = await env._requests.prompt(messages)
            item = messages, ENTRY_OF_FOUR, Exact()
            group, _ = await env.collect_trajectories(item)
            await env.close()
            return list(prompt.tokens), group

    prompt, group = asyncio.run(run())
    rows = zip(
        group["tokens"], group["masks"], group["inference_logprobs"], strict=True
    )
    for (tokens, masks, logprobs), sent in zip(rows, IDS, strict=True):
        assert tokens == [*prompt, *sent["token_ids"]]
        assert masks == [-100] * len(prompt) + sent["token_ids"]
        told = sent["logprobs"]["token_logprobs"]
        assert logprobs == [1.0] * len(prompt) + told


# -- where it is -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "path", "is_openai", "url"),
    [
        ("http://h/v1", "/v1/completions", True, "http://h/v1/completions"),
        ("http://h/v1/", "/v1/completions", True, "http://h/v1/completions"),
        ("http://h/gate/v1", "/generate", True, "http://h/gate/generate"),
        ("http://h", "/v1/completions", True, "http://h/completions"),
        ("http://h/v1", "/v1/completions", False, "http://h/v1/completions"),
        ("http://h", "/v1/completions", False, "http://h/v1/completions"),
        ("http://h/v1", "/generate", False, "http://h/generate"),
    ],
)
def test_a_route_is_below_the_url_of_the_settings(base, path, is_openai, url):
    assert url_of(base, path, is_openai=is_openai) == url


# -- several kinds together ------------------------------------------------------------


def bodies_of(trains):
    """Have one environment ask a stock vLLM and an SGLang; return what they saw."""
    ends = [stock_vllm(), Odd({"POST /generate": sglang_answer})]

    async def run():
        async with serving(ends[0]) as one, serving(ends[1]) as other:
            kinds = zip((one, other), ("openai", "sglang"), strict=True)
            configs = [
                server_config(url, kind, model_name=MODEL, health_check=False)
                for url, kind in kinds
            ]
            env = ReasoningGymEnv(env_config(), configs)
            env._inference.trains = trains
            prompt = Prompt([{"role": "user", "content": "2 + 2?"}], PROMPT, False)
            asking = [
                env._inference.generate(prompt, 2, Sampling(9, 1.0, 1.0, "train"))
                for _ in range(4)
            ]
            made = await asyncio.gather(*asking)
            await env.close()
            return made

    return [c for group in asyncio.run(run()) for c in group], [e.bodies for e in ends]


def test_servers_of_several_kinds_train_together():
    made, (vllm, sglang) = bodies_of(trains=True)
    assert all(completion.logprobs is not None for completion in made)
    assert {body["n"] for body in vllm} == {2} and "prompt" in vllm[-1]
    assert "input_ids" in sglang[-1]


def test_otherwise_each_is_asked_in_its_own_way():
    made, (vllm, sglang) = bodies_of(trains=False)
    assert {c.logprobs is None for c in made} == {True, False}
    assert all("messages" in body for body in vllm)
    assert all("input_ids" in body for body in sglang)
