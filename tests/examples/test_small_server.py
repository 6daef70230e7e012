"""The small inference server over real HTTP, with a policy that needs no torch."""

import asyncio
import contextlib

import aiohttp
import numpy as np
import pytest
from transformers import AutoTokenizer

from examples.train_small.small_server import SmallServer, build_app
from rg_env.demo.inference_server import serve_app
from rg_env.inference import client as client_module
from rg_env.inference.completions import PROBE_TOKENS
from rg_env.inference.routes import COMPLETIONS
from tests.examples.policies import TOKENIZER, policy_of, write_folder
from tests.support.parts import server_config, until

PROMPT = TOKENIZER.encode("2 + 2?")
END = TOKENIZER.end_id
(A,) = TOKENIZER.encode("a")
(B,) = TOKENIZER.encode("b")


def body_of(**changes):
    """Return a request as the environment makes it."""
    return {
        "model": "policy",
        "prompt": PROMPT,
        "n": 1,
        "max_tokens": 8,
        "temperature": 1.0,
        "top_p": 1.0,
        "logprobs": 0,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
        "top_k": -1,
        "min_p": 0.0,
        **changes,
    }


class Client:
    def __init__(self, url, session, server):
        self.url, self._session, self._server = url, session, server

    async def post(self, path="/v1/completions", body=None):
        async with self._session.post(self.url + path, json=body) as reply:
            return reply.status, await reply.json()

    async def complete(self, **changes):
        status, reply = await self.post(body=body_of(**changes))
        assert status == 200, reply
        return reply["choices"]

    async def get(self, path):
        async with self._session.get(self.url + path) as reply:
            return reply.status


@contextlib.asynccontextmanager
async def serving(policy, folder):
    write_folder(folder, policy)
    server = SmallServer(policy, folder)
    async with (
        serve_app(build_app(server), notices_departures=True) as url,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session,
    ):
        yield Client(url, session, server)


def asked(policy, folder, talk):

    async def run():
        async with serving(policy, folder) as client:
            return await talk(client)

    return asyncio.run(run())


@pytest.fixture
def reply_of_eight(tmp_path):
    policy = policy_of(a=1.0, b=0.5, end=0.0)
    choices = asked(policy, tmp_path, lambda c: c.complete(n=8, max_tokens=5))
    return policy, choices


# -- completions -----------------------------------------------------------------------


def test_each_token_has_the_log_probability_that_the_policy_gives_it(reply_of_eight):
    policy, choices = reply_of_eight
    for choice in choices:
        ids = choice["token_ids"]
        told = choice["logprobs"]["token_logprobs"]
        np.testing.assert_allclose(told, policy.log_probabilities(ids), rtol=1e-5)


def test_a_completion_says_whether_it_ended_or_was_cut(reply_of_eight):
    _, choices = reply_of_eight
    assert {choice["finish_reason"] for choice in choices} == {"stop", "length"}
    for choice in choices:
        *before, last = choice["token_ids"]
        assert END not in before
        has_ended = choice["finish_reason"] == "stop"
        assert has_ended == (last == END)
        assert has_ended or len(choice["token_ids"]) == 5


# -- batches ---------------------------------------------------------------------------


async def test_requests_that_arrive_together_are_one_batch_and_keep_their_limits(
    tmp_path,
):
    policy = policy_of(a=0.0)

    async with serving(policy, tmp_path) as client:
        limits = [3, 9, 6]
        asks = [client.complete(n=2, max_tokens=limit) for limit in limits]
        replies = await asyncio.gather(*asks)
    assert policy.calls == [(6, 9, 1.0)]
    lengths = [[len(choice["token_ids"]) for choice in reply] for reply in replies]
    assert lengths == [[3, 3], [9, 9], [6, 6]]


# -- new weights -----------------------------------------------------------------------


async def test_new_weights_are_taken_after_the_batch_that_is_being_sampled(tmp_path):
    policy = policy_of(a=0.0)
    policy.may_sample.clear()

    async with serving(policy, tmp_path) as client:
        old = asyncio.ensure_future(client.complete(n=2))
        await until(lambda: policy.calls, "it samples")
        policy_of(b=0.0).save_weights(tmp_path)
        reload = {"method": "reload_weights"}
        taking = asyncio.ensure_future(client.post("/collective_rpc", reload))
        assert await client.get("/health") == 200
        await asyncio.sleep(0.1)
        assert not taking.done()
        policy.may_sample.set()
        reply, reset = await taking, await client.post("/reset_prefix_cache")
        old, new = await old, await client.complete(n=2)
    assert reply == (200, {"results": [None]})
    assert reset == (200, {"success": True})
    assert {token for choice in old for token in choice["token_ids"]} == {A}
    assert {token for choice in new for token in choice["token_ids"]} == {B}


# -- what it does not do ---------------------------------------------------------------


REFUSED = [
    ({"prompt": [1, 10**6]}, "another tokenizer"),
    ({"prompt": [A] * 4090}, "context length"),
    ({"top_p": 0.9}, "`top_p`"),
    ({"guided_json": {}}, "`guided_json`"),
    ({"model": "another"}, "`model`"),
]


def test_what_it_does_not_do_is_refused_by_name(tmp_path):
    async def ask_each(client):
        return [await client.post(body=body_of(**changes)) for changes, _ in REFUSED]

    replies = asked(policy_of(a=0.0), tmp_path, ask_each)
    for (changes, named), (status, reply) in zip(REFUSED, replies, strict=True):
        assert status == 400, changes
        assert named in reply["error"]["message"], changes


# -- this project's own client ---------------------------------------------------------


@pytest.mark.slow
def test_it_is_probed_and_asked_for_token_ids(tmp_path):
    policy = policy_of(a=0.0, b=0.0, end=-1.0)

    async def probe(client):
        config = server_config(client.url, "openai", model_name="policy")
        server = client_module.Client(config)
        server.tokenizer = AutoTokenizer.from_pretrained(tmp_path)
        server.needs_tokens = True
        await server.probe()
        await server.close()
        return server.route

    assert asked(policy, tmp_path, probe) is COMPLETIONS
    assert policy.calls == [(2, PROBE_TOKENS, 1.0)]
