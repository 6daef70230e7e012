"""Replies are limited in size, and a refusal names its setting."""

import orjson
import pytest
from aiohttp import web

from rg_env.inference import connection
from rg_env.inference.connection import (
    MAX_RETRY_AFTER_S,
    MAX_TEXT_CHARS,
    Connection,
    RequestFailedError,
    failure_of,
    retry_after_s,
    url_of,
)
from rg_env.inference.connection import refusal as read_refusal
from tests.support.odd_servers import HTML, Odd, recorded, refusal, serving
from tests.support.parts import server_config
from tests.support.web_apps import app_of, serve_app

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
    monkeypatch.setattr(connection, "MAX_REPLY_BYTES", 16 * MEBIBYTE)


async def asked(url):
    """Query a server; return the size of its reply."""
    there = Connection(server_config(url))
    try:
        return sum(map(len, await there.post("/x", {})))
    finally:
        await there.close()


async def test_a_body_of_a_gigabyte_is_refused():
    async def endless(request):
        await (reply := web.StreamResponse()).prepare(request)
        for _ in range(1024):
            await reply.write(b" " * MEBIBYTE)
        return reply

    async with serve_app(app_of(endless)) as url:
        with pytest.raises(RequestFailedError, match="longer than 16 MiB"):
            await asked(url)


async def test_no_redirect_is_followed_and_the_error_says_where_it_leads():
    other = Odd({}, otherwise={})
    async with serving(other) as place:
        odd = Odd({}, otherwise=(308, f"{place}/x"))
        async with serving(odd) as url:
            with pytest.raises(RequestFailedError, match=f"redirects to {place}"):
                await asked(url)
    assert other.asked == []


# -- what servers say when they refuse a request ---------------------------------------


def bytes_of(body):
    return body.encode() if isinstance(body, str) else orjson.dumps(body)


CONTEXT, KEY, NAME = "env.max_token_length", "openai.api_key", "openai.model_name"
CASES = {
    "openai, more than the model writes": (
        *(400, refusal("max_tokens is too large: 200000.", "", "max_tokens")),
        CONTEXT,
    ),
    "openai, context": (
        *(400, refusal("Please reduce the length.", "context_length_exceeded")),
        CONTEXT,
    ),
    **{f"key {status}": (status, "Add credits", KEY) for status in (401, 402, 403)},
    "vllm, another model": (*recorded("unknown model"), NAME),
    "vllm, too long": (*recorded("too long"), CONTEXT),
    **{
        said: (400, {"error": {"message": said}}, setting)
        for said, setting in {
            "This model's maximum context length is 4096": CONTEXT,
            "The input (9 tokens) is longer than the model's limit": CONTEXT,
            "the request exceeds the available context size": CONTEXT,
            "The model `m` does not exist": NAME,
            'model "m" not found, try pulling it first': NAME,
            "m is not a valid model ID": NAME,
        }.items()
    },
}
"""What OpenAI, vLLM, SGLang, llama.cpp, Ollama and OpenRouter say."""


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_names_the_setting(case):
    status, body, field = CASES[case]
    found = read_refusal(status, bytes_of(body))
    assert found.setting == field and found.kind == f"status_{status}"
    assert found.text.startswith(f"{status} ") and "\n" not in found.text


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, "computer says no"),
        (429, refusal("You exceeded your current quota", "insufficient_quota")),
        (500, {"message": "maximum context length"}),
        (422, "[]"),
        (404, {"detail": "Not Found"}),
    ],
)
def test_a_refusal_without_a_setting_names_none(status, body):
    assert read_refusal(status, bytes_of(body)).setting is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (HTML, "a web page"),
        ("word " * 10_000, "word " * (MAX_TEXT_CHARS // 5)),
        ({"error": {"message": "no."}}, "no"),
        ({"detail": [{"loc": ["body", "n"], "msg": "too many"}]}, "too many"),
    ],
)
def test_the_message_of_a_refusal_is_one_line(body, said):
    assert read_refusal(400, bytes_of(body)).text == f"400 {said}"[:204].rstrip()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("20", 20),
        ("86400", MAX_RETRY_AFTER_S),
        ("9" * 4000, MAX_RETRY_AFTER_S),
        *((odd, 0) for odd in ("", "-5", "nan", "Fri, 31 Dec 9999 23:59:59 GMT")),
    ],
)
def test_retry_after_is_read_as_seconds_within_bounds(value, seconds):
    assert retry_after_s(value) == seconds


@pytest.mark.parametrize(("status", "seconds"), [(429, 20), (503, 20), (500, 0)])
def test_a_busy_server_may_say_when_to_try_again(status, seconds):
    refused = read_refusal(status, b"", {"Retry-After": "20"})
    assert refused.retry_after_s == seconds


def test_the_key_is_never_repeated():
    key, body = "sk-secret-1", b'{"error": "wrong key sk-secret-1"}'
    said = read_refusal(401, body, {}, [key]).text
    assert "secret" not in said and "wrong key" in said
    assert "secret" not in failure_of(OSError("proxy said sk-secret-1"), key).text
    assert read_refusal(401, b"extra", {}, ["x"]).text.startswith(
        "401 extra"
    )  # a placeholder
