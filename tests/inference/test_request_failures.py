"""What servers say when they refuse a request is read into the setting at fault."""

import orjson
import pytest

from rg_env.inference.request_failures import (
    LONGEST_TEXT,
    no_reply,
)
from rg_env.inference.request_failures import refusal as read_refusal
from tests.support.odd_servers import HTML, recorded, refusal


def text_of(body):
    return body if isinstance(body, str) else orjson.dumps(body).decode()


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
    "no credit": (402, {"error": {"message": "Add credits"}}, KEY),
    "no key": (401, {"error": {"message": "Incorrect API key"}}, KEY),
    "no rights": (403, {"error": {"message": "Country"}}, KEY),
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
    found = read_refusal(status, text_of(body))
    assert found.setting == field and found.kind == f"status_{status}"
    assert found.text.startswith(f"{status} ") and "\n" not in found.text
    assert (field == CONTEXT) == ("env.eval_max_token_length" in found.text)


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
    assert read_refusal(status, text_of(body)).setting is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (HTML, "a web page"),
        ("word " * 10_000, "word " * (LONGEST_TEXT // 5)),
        ({"error": {"message": "no."}}, "no"),
        ({"detail": [{"loc": ["body", "n"], "msg": "too many"}]}, "too many"),
    ],
)
def test_what_is_said_is_a_line_for_people(body, said):
    assert read_refusal(400, text_of(body)).text == f"400 {said}"[:204].rstrip()


def test_the_key_is_never_repeated():
    key, body = "sk-secret-1", '{"error": "wrong key sk-secret-1"}'
    said = read_refusal(401, body, "", key).text
    assert "secret" not in said and "wrong key" in said
    assert "secret" not in no_reply(OSError("proxy said sk-secret-1"), key).text
    assert read_refusal(401, "extra", "", "x").text.startswith(
        "401 extra"
    )  # a placeholder
