"""A reply without an end is given up, whoever sends it."""

import asyncio

import pytest
from aiohttp import web
from parts import server_config

from rg_env.atropos import api_client
from rg_env.atropos.api_client import ApiClient, ApiUnreachable
from rg_env.inference import native_servers
from rg_env.inference.bounded_bodies import BodyTooLongError
from rg_env.inference.native_servers import client_of
from rg_env.simulation.inference_server import serve_app

CHUNK = b" " * 2**16


async def endless(request):
    reply = web.StreamResponse(headers={"Content-Type": "application/json"})
    await reply.prepare(request)
    while True:
        await reply.write(CHUNK)


async def ask(kind, url):
    if kind == "api":
        api = ApiClient(url)
        try:
            await api.request("GET", "/info")
        finally:
            await api.close()
    client = client_of(server_config(url, kind, health_check=False))
    try:
        if kind == "openai":
            messages = [{"role": "user", "content": "hi"}]
            await client._chat_completion_wrapper(model="m", messages=messages)
        await client._tokens_and_logprobs_completion_wrapper(
            input_ids=[5], n=2, max_tokens=9
        )
    finally:
        await client.close()


@pytest.mark.parametrize("kind", ["api", "vllm", "sglang", "openai"])
def test_a_body_without_an_end_is_read_no_further_than_an_honest_one(kind, monkeypatch):
    monkeypatch.setattr(native_servers, "MOST_BYTES_OF_A_CHAT", 2**20)
    monkeypatch.setattr(api_client, "MOST_BYTES_OF_THE_API", 2**20)

    async def run():
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", endless)
        async with serve_app(app) as url:
            await asyncio.wait_for(ask(kind, url), 30)

    with pytest.raises((BodyTooLongError, ApiUnreachable), match="longer than 1 MiB"):
        asyncio.run(run())
