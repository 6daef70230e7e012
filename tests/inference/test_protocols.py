"""Replies of servers are read or refused; see test_client.py for `/generate`."""

import json

import pytest

from rg_env.inference import protocols
from rg_env.inference.completions import Completion, why_unusable
from rg_env.inference.prompts import Prompt
from rg_env.inference.protocols import PARSE_ERRORS
from tests.support.odd_servers import recorded


def read_with(route):
    def columns(body):
        made = list(route.read(body, Prompt([], [5], False)))
        names = ("tokens", "logprobs", "finish_reason")
        return tuple([getattr(each, name) for each in made] for name in names)

    return columns


read_atropos = read_with(protocols.ATROPOS)
read_sglang = read_with(protocols.SGLANG)
read_completions = read_with(protocols.COMPLETIONS)


def encoded(reply):
    return json.dumps(reply).encode()


ATROPOS = [
    *(b"<html>", b"{}", b'{"logprobs": null, "finish_reasons": null}', b"[]"),
    b'{"logprobs": [[[{"5": NaN}]]], "finish_reasons": ["stop"]}',
    b'{"logprobs": [[[{"five": -0.1}]]], "finish_reasons": ["stop"]}',
    b'{"logprobs": [[[]]], "finish_reasons": ["stop"]}',
    b'{"logprobs": [[[{"5": -0.1}]]], "finish_reasons": []}',
]
SGLANG = [
    *(b'{"error": "no"}', b'[{"text": "a"}]', b'[{"meta_info": {"finish_reason": 1}}]'),
    b'[{"meta_info": {"output_token_logprobs": [[-0.5, 7.5, null]]}}]',
]
COMPLETIONS = [
    *(b"", b"{}", b'{"choices": 3}', b'{"choices": [3]}'),
    b'{"choices": [{"token_ids": [1.5]}]}',
    b'{"choices": [{"token_ids": [%s]}]}' % (b"9" * 5000),
    *(b'{"choices": [{"finish_reason": 7}]}', b"[" * 100_000),
]


@pytest.mark.parametrize(
    ("read", "body"),
    [
        *((read_atropos, body) for body in ATROPOS),
        *((read_sglang, body) for body in SGLANG),
        *((read_completions, body) for body in COMPLETIONS),
    ],
)
def test_a_reply_of_another_form_is_an_error(read, body):
    with pytest.raises(PARSE_ERRORS):
        read(body)


# -- /v1/completions ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["ids", "top_k of one"])
def test_a_recorded_reply_of_vllm_is_read(name):
    _, reply = recorded(name)
    read = read_completions(encoded(reply))
    for sent, row in zip(reply["choices"], zip(*read, strict=True), strict=True):
        told = sent["logprobs"]["token_logprobs"]
        assert row == (sent["token_ids"], told, sent["finish_reason"])
        assert why_unusable(Completion(None, *row)) is None


def test_ids_in_the_place_of_tokens_are_read_also_if_there_are_none():
    _, reply = recorded("ids")
    none = {"tokens": [], "token_logprobs": []}
    reply["choices"][-1] |= {"token_ids": [], "logprobs": none}
    read = read_completions(encoded(reply))
    for sent in reply["choices"]:
        del sent["token_ids"]
    assert read_completions(encoded(reply)) == read
