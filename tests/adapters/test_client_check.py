"""What `run-api` and `score-server` do not serve: web pages and foreign host names."""

import socket

import pytest

pytest.importorskip("starlette")

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from rg_env.serving import ClientCheck

SECRET = "s3cret-" * 3


async def answer(request):
    return PlainTextResponse("served")


@pytest.fixture
def client():
    inner = Starlette(routes=[Route("/", answer, methods=["GET", "POST"])])
    served = ClientCheck(inner, names=["10.0.0.9", "Scores.example.org"])
    return TestClient(served, base_url="http://127.0.0.1")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("[fe80::1]:8000", 200),
        ("LOCALHOST:8000", 200),
        ("localhost.", 200),
        (socket.gethostname(), 200),
        ("scores.example.org:80", 200),
        ("127.0.0.1.evil.test", 403),
        ("rebound", 403),
        ("localhost:80:80", 403),
        ("", 403),
    ],
)
def test_a_host_that_is_no_address_of_the_server_is_refused(client, host, status):
    reply = client.get("/", headers={"Host": host})
    assert reply.status_code == status
    assert status == 200 or "--allowed_hosts" in reply.json()["error"]


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, 200),
        ("GET", {"Sec-Fetch-Site": "none"}, 200),  # an address that somebody has typed
        ("GET", {"Origin": "http://127.0.0.1"}, 403),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image"}, 403),
        ("GET", {"Referer": "http://evil.test/"}, 403),  # an image in an old browser
        ("POST", {"Content-Type": "application/json; charset=utf-8"}, 200),
        ("POST", {}, 200),
        ("POST", {"Content-Type": "text/plain"}, 415),
    ],
)
def test_what_a_web_page_sends_is_refused(client, method, headers, status):
    reply = client.request(method, "/", headers=headers)
    assert reply.status_code == status
    assert "access-control-allow-origin" not in reply.headers


def test_a_secret_does_not_make_a_foreign_host_a_known_one():
    client = TestClient(ClientCheck(Starlette(), SECRET), base_url="http://evil.test")
    assert client.get(f"/{SECRET}/").status_code == 403
