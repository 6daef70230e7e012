"""What servers say when they refuse a request is read into the setting at fault."""

import pytest
from aiohttp import ClientResponseError
from odd_servers import HTML, refusal

from rg_env.inference.reply_reasons import (
    is_about_the_model,
    read_refusal,
    refusal_behind,
    why_key,
    why_setting,
)

URL = "http://h:9004/v1"


def text_of(body):
    import orjson

    return body if isinstance(body, str) else orjson.dumps(body).decode()


def why(status, body):
    return why_setting(URL, read_refusal(status, text_of(body)))


UNSUPPORTED = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
    " 'max_completion_tokens' instead."
)
CASES = {
    "openai, more than the model writes": (
        400,
        refusal("max_tokens is too large: 200000.", "invalid_value", "max_tokens"),
        "env.max_token_length: ",
    ),
    "openai, context": (
        400,
        refusal("Please reduce the length.", "context_length_exceeded", "messages"),
        "env.max_token_length: prompt and completion",
    ),
    "vllm, context": (
        400,
        {"object": "error", "message": "This model's maximum context length is 4096"},
        "env.max_token_length: prompt and completion",
    ),
    "vllm since 0.9, context": (
        400,
        {"error": {"message": "max_tokens exceeds max_model_len", "code": 400}},
        "env.max_token_length: prompt and completion",
    ),
    "sglang, context": (
        400,
        {"error": {"message": "The input (9 tokens) is longer than the model's limit"}},
        "env.max_token_length: prompt and completion",
    ),
    "llama.cpp, context": (
        400,
        {"error": {"message": "the request exceeds the available context size"}},
        "env.max_token_length: prompt and completion",
    ),
    "a model that has one temperature": (
        400,
        refusal("Unsupported value: 'temperature'", "unsupported_value", "temperature"),
        "env.temperature",
    ),
    "a parameter named in words": (
        422,
        {"detail": "`top_p` must be below 1"},
        "env.top_p: top_p is refused",
    ),
    "fastapi": (
        422,
        {"detail": [{"loc": ["body", "temperature"], "msg": "is too high"}]},
        "env.temperature",
    ),
    "n": (400, refusal("n must be 1"), "env.group_size: n is refused"),
    "no credit": (402, {"error": {"message": "Add credits"}}, "openai.api_key: "),
}


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_names_the_setting(case):
    status, body, begin = CASES[case]
    sentence = why(status, body)
    assert sentence is not None and sentence.startswith(begin)
    assert f"{URL} says {status}: " in sentence and "\n" not in sentence


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
    ],
)
def test_a_refusal_without_a_setting_names_none(status, body):
    assert why(status, body) is None


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, refusal("The model `m` does not exist", "model_not_found")),
        (404, {"object": "error", "message": "The model `m` does not exist."}),
        (404, {"error": {"message": 'model "m" not found, try pulling it first'}}),
        (400, {"error": {"message": "m is not a valid model ID"}}),
        (400, refusal("unknown", None, "model")),
    ],
)
def test_a_refusal_of_the_model_is_known(status, body):
    assert is_about_the_model(read_refusal(status, text_of(body)))


def test_a_missing_page_is_no_missing_model():
    assert not is_about_the_model(read_refusal(404, '{"detail":"Not Found"}'))


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


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_long_reply_is_cut(size):
    assert len(read_refusal(400, "word " * size).said) <= 200


def test_the_key_is_never_repeated():
    reply = read_refusal(401, '{"error": "wrong key sk-secret-1"}', "sk-secret-1")
    assert "secret" not in why_key(URL, reply) and "wrong key" in why_key(URL, reply)


def test_a_placeholder_is_not_looked_for_in_the_words():
    assert read_refusal(401, "extra", "x").said == "extra"


def test_a_connection_that_failed_is_no_reply():
    assert refusal_behind(ConnectionRefusedError(), None) is None
    assert refusal_behind(ClientResponseError(None, (), status=404), None).status == 404
