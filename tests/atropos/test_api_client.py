"""The API over HTTP: statuses become errors, and patience."""

import asyncio

import pytest
from aiohttp import web

from rg_env import patience
from rg_env.atropos.api_client import (
    ApiClient,
    ApiFaultError,
    ApiRefusedError,
    ApiUnreachableError,
)
from rg_env.demo.http_app import serve_app

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(patience, "API_FIRST_PAUSE_S", 0.02)


def replied(handler, method="GET", path="/x", **patiently):
    """Query a server once, or patiently."""

    async def run():
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        async with serve_app(app) as url:
            client = ApiClient(url)
            try:
                if not patiently:
                    return await client.request(method, path)
                return await client.patiently(
                    lambda: client.request(method, path), **patiently
                )
            finally:
                await client.close()
                await client.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("status_code", "error"),
    [
        (500, ApiFaultError),
        (503, ApiFaultError),
        (429, ApiFaultError),
        (422, ApiRefusedError),
    ],
)
def test_a_status_becomes_its_error(status_code, error):
    async def handler(request):
        return web.Response(status=status_code, text="why")

    with pytest.raises(error, match=f"GET /x: status {status_code}"):
        replied(handler)


@pytest.mark.parametrize("text", ["<html>", "[]", '"ok"', "null"])
def test_an_answer_that_is_no_object_is_no_answer(text):
    async def handler(request):
        return web.Response(text=text)

    with pytest.raises(ApiUnreachableError):
        replied(handler)


def test_a_faulting_api_is_queried_again_and_its_recovery_is_said_once(logged):
    left = [500, 500]

    async def handler(request):
        return web.Response(status=left.pop()) if left else web.json_response({"a": 1})

    assert replied(handler, even_if_refused=False) == {"a": 1}
    said = [record.getMessage() for record in logged.records]
    assert len(said) == 2 and "status 500" in said[0] and "again" in said[1]


def test_a_refusal_is_waited_out_where_it_cannot_be_meant():
    left = [404, 403]

    async def handler(request):
        return web.Response(status=left.pop()) if left else web.json_response({"a": 1})

    assert replied(handler, even_if_refused=True) == {"a": 1}


def test_a_refusal_is_not_tried_again():
    count = 0

    async def handler(request):
        nonlocal count
        count += 1
        return web.Response(status=422)

    with pytest.raises(ApiRefusedError):
        replied(handler, even_if_refused=False)
    assert count == 1


@pytest.mark.parametrize(
    ("url", "is_far"),
    [
        ("http://localhost:8000", False),
        ("http://127.0.0.1:8000/", False),
        ("http://[::1]:8000", False),
        ("http://node-7:8000", True),
        ("https://localhost.example.org", True),
    ],
)
def test_an_api_is_far_unless_its_address_is_this_machine_by_name(url, is_far):
    assert ApiClient(url).is_far is is_far
