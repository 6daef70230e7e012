"""What is read from a server is bounded, and what it refuses is told."""

import asyncio

import pytest
from aiohttp import web

from rg_env.demo.inference_server import serve_app
from rg_env.inference import connection
from rg_env.inference.connection import Connection, url_of
from rg_env.inference.request_failures import RequestFailedError
from tests.support.odd_servers import Odd, serving
from tests.support.parts import server_config

MEBIBYTE = 2**20
CHAT, GENERATE = "/v1/chat/completions", "/generate"


@pytest.mark.parametrize(
    ("base", "path", "is_openai", "url"),
    [
        ("http://h/v1", CHAT, True, "http://h/v1/chat/completions"),
        ("http://h/gate/v1", GENERATE, True, "http://h/gate/generate"),
        ("http://h/api/v3", CHAT, True, "http://h/api/v3/chat/completions"),
        ("http://h", CHAT, False, "http://h/v1/chat/completions"),
        ("http://h/v1", GENERATE, False, "http://h/generate"),
    ],
)
def test_a_route_is_below_the_url_of_the_settings(base, path, is_openai, url):
    assert url_of(base, path, is_openai=is_openai) == url


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(connection, "LONGEST_REPLY_BYTES", 16 * MEBIBYTE)


async def asked(url):
    """Ask a server; return the size of its reply."""
    there = Connection(server_config(url), is_openai=False)
    try:
        return sum(map(len, await there.post("/x", {})))
    finally:
        await there.close()


def asked_of(handler):
    async def run():
        app = web.Application()
        app.router.add_post("/x", handler)
        async with serve_app(app) as url:
            return await asked(url)

    return asyncio.run(run())


def test_a_body_of_a_gigabyte_is_given_up():
    async def endless(request):
        await (reply := web.StreamResponse()).prepare(request)
        for _ in range(1024):
            await reply.write(b" " * MEBIBYTE)
        return reply

    with pytest.raises(RequestFailedError, match="longer than 16 MiB"):
        asked_of(endless)


@pytest.mark.parametrize("status", [301, 308])
async def test_no_redirect_is_followed_and_the_error_says_where_it_leads(status):
    other = Odd({}, otherwise={})
    async with serving(other) as place:
        odd = Odd({}, otherwise=(status, f"{place}/x"))
        async with serving(odd) as url:
            with pytest.raises(RequestFailedError, match=f"redirects to {place}"):
                await asked(url)
    assert other.asked == []


@pytest.mark.parametrize("page", ["{}", '{{"error": "{}"}}', "<title>{}</title>"])
def test_control_characters_of_a_server_are_escaped(page):
    async def refuse(request):
        return web.Response(status=400, text=page.format("a\x1b[2J\x07\u202eb"))

    with pytest.raises(RequestFailedError) as caught:
        asked_of(refuse)
    assert str(caught.value).isprintable()
