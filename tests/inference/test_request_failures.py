"""What servers say when they refuse a request is read into the setting at fault."""

import orjson
import pytest
from aiohttp import ClientResponseError

from rg_env.inference.request_failures import (
    CONTEXT,
    LONGEST_SAID,
    MODEL,
    read_refusal,
    refusal_behind,
    sentence,
)
from tests.support.odd_servers import HTML, recorded, refusal

URL = "http://h:9004/v1"


def text_of(body):
    return body if isinstance(body, str) else orjson.dumps(body).decode()


def setting(status, body):
    return read_refusal(status, text_of(body)).setting


CASES = {
    "openai, more than the model writes": (
        400,
        refusal("max_tokens is too large: 200000.", "invalid_value", "max_tokens"),
        "env.max_token_length",
    ),
    "openai, context": (
        400,
        refusal("Please reduce the length.", "context_length_exceeded", "messages"),
        "env.max_token_length",
    ),
    "vllm, context": (
        400,
        {"object": "error", "message": "This model's maximum context length is 4096"},
        "env.max_token_length",
    ),
    "vllm since 0.9, context": (
        400,
        {"error": {"message": "max_tokens exceeds max_model_len", "code": 400}},
        "env.max_token_length",
    ),
    "sglang, context": (
        400,
        {"error": {"message": "The input (9 tokens) is longer than the model's limit"}},
        "env.max_token_length",
    ),
    "llama.cpp, context": (
        400,
        {"error": {"message": "the request exceeds the available context size"}},
        "env.max_token_length",
    ),
    "no credit": (402, {"error": {"message": "Add credits"}}, "openai.api_key"),
    "no key": (401, {"error": {"message": "Incorrect API key"}}, "openai.api_key"),
    "no rights": (403, {"error": {"message": "Country"}}, "openai.api_key"),
    "vllm, another model": (*recorded("unknown model"), "openai.model_name"),
    "vllm, too long": (*recorded("too long"), "env.max_token_length"),
    "openai, another model": (
        404,
        refusal("The model `m` does not exist", "model_not_found"),
        "openai.model_name",
    ),
    "older vllm, another model": (
        404,
        {"object": "error", "message": "The model `m` does not exist."},
        "openai.model_name",
    ),
    "ollama, another model": (
        404,
        {"error": {"message": 'model "m" not found, try pulling it first'}},
        "openai.model_name",
    ),
    "openrouter, another model": (
        400,
        {"error": {"message": "m is not a valid model ID"}},
        "openai.model_name",
    ),
    "the parameter of the model": (
        400,
        refusal("unknown", None, "model"),
        "openai.model_name",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_names_the_setting(case):
    status, body, field = CASES[case]
    found = setting(status, body)
    assert found is not None and found.startswith(field)
    said = sentence(found, URL, read_refusal(status, text_of(body)))
    assert said.startswith(f"{field}") and "\n" not in said
    assert f": {URL} says {status}: " in said


def test_a_context_that_is_too_short_names_the_length_of_evaluation_as_well():
    said = sentence(CONTEXT, URL, read_refusal(400, "maximum context length is 9"))
    assert "env.eval_max_token_length" in said


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, refusal("The response was filtered", "content_filter")),
        (400, "computer says no"),
        (429, refusal("You exceeded your current quota", "insufficient_quota")),
        (500, {"message": "maximum context length"}),
        (400, ""),
        (422, "[]"),
        (400, "null"),
        (404, {"detail": "Not Found"}),
    ],
)
def test_a_refusal_without_a_setting_names_none(status, body):
    assert setting(status, body) is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (HTML, "Welcome"),
        ("<html><body>Nothing</body></html>", ""),
        ("404 page\n not found", "404 page not found"),
        ({"error": "no"}, "no"),
        ({"error": {"message": "no."}}, "no"),
        ({"detail": [{"loc": ["body", "n"], "msg": "too many"}]}, "body.n: too many"),
    ],
)
def test_what_is_said_is_a_line_for_people(body, said):
    assert read_refusal(400, text_of(body)).said == said


def test_a_long_reply_is_cut():
    assert len(read_refusal(400, "word " * 10_000).said) <= LONGEST_SAID


def test_the_key_is_never_repeated():
    said = read_refusal(401, '{"error": "wrong key sk-secret-1"}', "sk-secret-1").said
    assert "secret" not in said and "wrong key" in said
    assert read_refusal(401, "extra", "x").said == "extra"  # of a placeholder


def test_a_model_that_is_refused_is_told_with_those_that_are_there():
    refused = read_refusal(404, "no such model")
    assert sentence(MODEL, URL, refused, ["one", "two"]).endswith("it has: one, two")
    assert sentence(MODEL, URL, refused, list("abcdefghijk")).endswith("g, h, ...")
    assert sentence(MODEL, URL, refused).endswith("set one that it has")


def test_a_connection_that_failed_is_no_reply():
    assert refusal_behind(ConnectionRefusedError()) is None
    assert refusal_behind(ClientResponseError(None, (), status=404)).status == 404
