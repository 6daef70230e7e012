"""What is read from a server is bounded, and what it refuses is told."""

import asyncio
import contextlib
import gzip

import pytest
from aiohttp import web

from rg_env.atropos.api_client import ApiClient, ApiRefusedError, ApiUnreachableError
from rg_env.atropos.unnamed_model import served_models
from rg_env.demo.http_app import serve_app
from rg_env.inference import connection as connection_module
from rg_env.inference import request_failures
from rg_env.inference.connection import Connection, most_bytes
from rg_env.inference.request_failures import RequestFailedError
from tests.support.odd_servers import Odd, models, serving
from tests.support.parts import server_config

BLOCK = b" " * 2**20


@contextlib.asynccontextmanager
async def connected(app):
    async with serve_app(app) as url:
        connection = Connection(server_config(url), is_openai=False)
        try:
            yield connection
        finally:
            await connection.close()


def asked(handler, n=1, most_tokens=8):
    """Ask a server of one handler; return the size of the replies."""

    async def run():
        app = web.Application()
        app.router.add_post("/generate", handler)
        async with connected(app) as connection:
            bodies = await connection.query("/generate", lambda n: {}, n, most_tokens)
            return sum(len(block) for blocks in bodies for block in blocks)

    return asyncio.run(run())


class Endless:
    """A reply of megabytes, with or without its length."""

    def __init__(self, megabytes, *, is_told):
        self.megabytes, self.is_told, self.sent = megabytes, is_told, 0

    async def answer(self, request):
        reply = web.StreamResponse()
        if self.is_told:
            reply.content_length = self.megabytes * 2**20
        await reply.prepare(request)
        for _ in range(self.megabytes):
            await reply.write(BLOCK)
            self.sent += 1
        return reply


@pytest.mark.parametrize("is_told", [True, False])
def test_a_body_of_a_gigabyte_is_given_up_in_one_sentence(is_told):
    endless = Endless(1024, is_told=is_told)
    with pytest.raises(RequestFailedError, match="longer than 16 MiB") as bad:
        asked(endless.answer)
    assert endless.sent < 64 and "\n" not in str(bad.value)


async def test_the_api_is_read_no_further_than_a_correct_one():
    app = web.Application()
    app.router.add_get("/info", Endless(1024, is_told=False).answer)
    async with serve_app(app) as url:
        api = ApiClient(url)
        with pytest.raises(ApiUnreachableError, match="longer than 64 MiB"):
            await api.request("GET", "/info")
        await api.close()


def test_sixty_four_completions_of_32k_tokens_fit():
    per_token = len(b"151643,") + len(b'"token_id:151643",') + len(b"-0.0002940460690,")
    per_token += len(b'{"token_id:151643":-0.0002940460690},') + len(b"123456,") + 8
    assert most_bytes(64, 32768) > 2 * per_token * 64 * 32768


def test_a_long_reply_to_much_that_was_asked_is_read():
    answer = Endless(20, is_told=True).answer
    assert asked(answer, n=2, most_tokens=20_000) == 20 * 2**20


@pytest.mark.slow
def test_a_compressed_bomb_is_bounded_as_what_it_becomes():
    packed = gzip.compress(b" " * 2**26)

    async def bomb(request):
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    assert len(packed) < 2**17
    with pytest.raises(RequestFailedError, match="longer than 16 MiB"):
        asked(bomb)


def test_what_a_refusal_says_is_read_to_a_bound(monkeypatch):
    async def refuse(request):
        return web.Response(status=400, text="no " * 100_000)

    read = []

    def refusal(status, words, *more):
        read.append(words)
        return request_failures.refusal(status, words, *more)

    monkeypatch.setattr(connection_module, "refusal", refusal)
    with pytest.raises(RequestFailedError, match="400 no no"):
        asked(refuse)
    assert [len(words) for words in read] == [connection_module.REFUSAL_BYTES]


@pytest.mark.parametrize("page", [(404, "no"), (200, "[]"), (200, {"data": [3]}), 7])
def test_the_models_are_named_where_another_is_queried_and_the_server_says_them(page):
    async def run(page):
        odd = Odd({"GET /v1/models": page}, otherwise=(404, "no such model"))
        async with serving(odd) as url:
            connection = Connection(server_config(url), is_openai=False)
            try:
                await connection.query("/x", lambda n: {}, 1, 10)
            except RequestFailedError as error:
                return error.failure.sentence
            finally:
                await connection.close()

    said = asyncio.run(run(page))
    assert said == "404 no such model; set a model that the server has"
    two, many = models("v", "a", "b"), models("v", *"abcdefghijk")
    assert asyncio.run(run(two)) == "404 no such model; it has: a, b"
    assert asyncio.run(run(many)).endswith("g, h, ...")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed_and_the_error_says_where_it_leads(status):
    async def run():
        other = Odd({}, otherwise={})
        async with serving(other) as place:
            odd = Odd({}, otherwise=(status, f"{place}/x"))
            async with serving(odd) as url:
                connection = Connection(server_config(url), is_openai=False)
                client = ApiClient(url)
                with pytest.raises(RequestFailedError, match=f"redirects to {place}"):
                    await connection.query("/x", lambda n: {}, 1, 10)
                with pytest.raises(ApiRefusedError, match=f"{status}: {place}"):
                    await client.request("POST", "/register", {})
                models = await asyncio.to_thread(served_models, server_config(url))
                await connection.close()
                await client.close()
        return models, other.asked

    assert asyncio.run(run()) == (None, [])


@pytest.mark.parametrize("page", ["{}", '{{"error": "{}"}}', "<title>{}</title>"])
def test_control_characters_of_a_server_are_escaped(page):
    async def refuse(request):
        return web.Response(status=400, text=page.format("a\x1b[2J\x07\u202eb"))

    with pytest.raises(RequestFailedError) as caught:
        asked(refuse)
    assert str(caught.value).isprintable()
