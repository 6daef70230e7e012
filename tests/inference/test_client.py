"""Our clients send and read what the framework's clients do, over real HTTP."""

import asyncio
import contextlib
import itertools
import threading

import pytest
from atroposlib.envs.server_handling.managed_server import ManagedServer
from atroposlib.envs.server_handling.sglang_server import SGLangServer
from atroposlib.envs.server_handling.vllm_server import VLLMServer

from rg_env.inference import client as client_module
from rg_env.inference import completions
from rg_env.inference.client import Client
from rg_env.inference.completions import Sampling, read_tokens
from rg_env.inference.connection import refusal
from rg_env.inference.prompts import Prompt
from rg_env.inference.server_health import EJECTED_AFTER_FAILURES
from tests.support.odd_servers import Odd, serving
from tests.support.parts import (
    RIGHT,
    build_env,
    server_config,
    sglang_reply,
    until,
    vllm_reply,
)

pytestmark = pytest.mark.slow

HOSTS = {"vllm": VLLMServer, "sglang": SGLangServer}
KINDS = pytest.mark.parametrize("kind", HOSTS)
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "2 + 2? ünïcode 数"},
]


SHAPES = {"vllm": vllm_reply, "sglang": sglang_reply}


class Seen(Odd):
    """A server that records its connections and its requests at one time."""

    def __init__(self, reply):
        super().__init__({"POST /generate": lambda body: reply()})
        self.connections = set()
        self.most = self.now = 0
        self.waits_for = 0

    async def answer(self, request):
        self.connections.add(request.transport.get_extra_info("peername"))
        self.now += 1
        self.most = max(self.most, self.now)
        await until(lambda: self.most >= self.waits_for, "so many are there at once")
        self.now -= 1
        return await super().answer(request)


@contextlib.asynccontextmanager
async def talking(kind, reply):
    """Yield a client that was probed, and what its server has seen since."""
    answers = itertools.chain([SHAPES[kind]([RIGHT] * 2)], iter(reply, ...))
    seen = Seen(lambda: next(answers))
    async with serving(seen) as url:
        client = Client(server_config(url, kind, health_check=False))
        await client.probe()
        seen.bodies.clear()
        yield client, seen
        await client.close()


def ask(client, **arguments):
    return client._tokens_and_logprobs_completion_wrapper(model="m", **arguments)


async def test_a_connection_serves_many_requests_and_over_100_are_open():
    reply = vllm_reply([RIGHT])
    async with talking("vllm", lambda: reply) as (client, seen):
        for _ in range(5):
            await ask(client, input_ids=[5], n=1)
        assert (len(seen.connections), len(seen.bodies)) == (1, 5)
        seen.waits_for = 101
        asking = [ask(client, input_ids=[5], n=1) for _ in range(150)]
        await asyncio.gather(*asking)


ONE = Sampling(99_999, 1.0, 1.0, "train")


async def test_the_next_request_goes_out_before_a_reply_is_read(monkeypatch):
    order, nexts, prompt = [], [], Prompt([], [5], False)

    def watched(*args):
        order.append("read")
        return read_tokens(*args)

    async with talking("vllm", lambda: vllm_reply([RIGHT])) as (c, _):
        monkeypatch.setattr(client_module, "read_tokens", watched)

        async def ask_next():
            order.append("next request")
            return await c.complete(prompt, 1, ONE)

        def refill():
            nexts.append(asyncio.ensure_future(ask_next()))

        await c.complete(prompt, 1, ONE, refill)
        await nexts[0]
    assert order == ["next request", "read", "read"]


@KINDS
@pytest.mark.parametrize(("words", "is_off"), [(10, False), (20_000, True)])
async def test_a_long_reply_is_read_off_the_event_loop_with_pauses(
    kind, words, is_off, monkeypatch
):
    threads = []

    def release_gil():
        threads.append(threading.current_thread().name)

    texts = ["word " * words] * 3
    async with talking(kind, lambda: SHAPES[kind](texts)) as (c, _):
        monkeypatch.setattr(completions, "release_gil", release_gil)
        made = await c.complete(Prompt([], [5], False), 3, ONE)
    assert threads == ["executor_0" if is_off else "MainThread"] * 3
    assert len(made[0].tokens) > words


# -- whether it is queried -------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "is_up"),
    [(429, False), (500, False), *((status, True) for status in (400, 413, 422))],
)
def test_failures_in_a_row_eject_a_server_unless_the_request_is_at_fault(status, is_up):
    client = Client(server_config())
    client.is_up = True
    for _ in range(EJECTED_AFTER_FAILURES - 1):
        client.note_failure(refusal(status, b""))
    assert client.is_up
    client.note_failure(refusal(status, b""))
    assert client.is_up is is_up and str(status) in client.failure.text


async def test_a_closed_client_watches_its_server_no_more():
    client = Client(server_config())
    client.watch()
    await client.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


# -- completions -----------------------------------------------------------------------


async def through_the_hosts_managed_server(kind, url):
    """Return the completions of the framework's own client."""
    client = HOSTS[kind](server_config(url, kind, health_check=False))
    managed = ManagedServer(client)
    how = {"n": 3, "max_tokens": 500, "temperature": 0.7, "top_p": 0.9}
    made = await managed.chat_completion(messages=MESSAGES, **how)
    rows = []
    for choice, node in zip(made.choices, managed.get_state()["nodes"], strict=True):
        said = (choice.message.content, choice.finish_reason)
        rows.append((*said, node.tokens, node.masked_tokens, node.logprobs))
    return rows


async def through_our_requests(kind, url):
    how = {"temperature": 0.7, "top_p": 0.9, "group_size": 3, "max_token_length": 2000}
    env = build_env(url, kind, **how)
    prompt = await env._prompts.prompts.render(MESSAGES)
    env.config.max_token_length = len(prompt.tokens) + 500
    rows = await env._model.query((MESSAGES, None, None))
    await env.close()
    names = ("finish_reason", "tokens", "masks", "logprobs")
    return [
        (row["messages"][-1]["content"], *(row[name] for name in names)) for row in rows
    ]


TEXTS = ["<answer>4</answer>", '[{"1": é}]', "数 \U0001f600 <|im_end|>"]


@KINDS
@pytest.mark.parametrize("finish_reason", ["stop", "length"])
async def test_completions_equal_those_of_the_frameworks_managed_server(
    kind, finish_reason
):
    reply = SHAPES[kind](TEXTS, finish_reason)
    odd = Odd({"POST /generate": lambda body: reply})
    async with serving(odd) as url:
        theirs = await through_the_hosts_managed_server(kind, url)
        ours = await through_our_requests(kind, url)
    assert odd.bodies[0] == odd.bodies[-1]
    assert ours == theirs
