"""Replies with token ids are read, and of others it is said what is missing."""

import json
import time

import msgspec
import pytest
from odd_servers import recorded

from rg_env.inference.native_replies import is_usable
from rg_env.inference.token_replies import (
    LOGPROBS,
    TOKEN_IDS,
    MissingInReplyError,
    read_completions,
    read_tokens,
    read_trl,
)


def body_of(reply):
    return json.dumps(reply).encode()


def choice(ids=(5, 6), logprobs=(-0.5, -1.0), end="stop", **more):
    told = {"token_logprobs": list(logprobs), **more}
    return {"token_ids": list(ids), "logprobs": told, "finish_reason": end}


def reply_of(*choices):
    return body_of({"choices": list(choices)})


@pytest.mark.parametrize("name", ["ids", "top_k of one"])
def test_what_a_stock_vllm_has_said_is_read(name):
    _, reply = recorded(name)
    read = read_completions(body_of(reply))
    for i, sent in enumerate(reply["choices"]):
        assert read.tokens[i] == sent["token_ids"]
        assert read.logprobs[i] == sent["logprobs"]["token_logprobs"]
        assert read.finish_reasons[i] == sent["finish_reason"]
        assert is_usable(read.tokens[i], read.logprobs[i], read.finish_reasons[i])


def test_ids_that_are_written_as_tokens_are_the_same():
    _, reply = recorded("ids")
    read = read_completions(body_of(reply))
    for sent in reply["choices"]:
        del sent["token_ids"]
    assert read_completions(body_of(reply)) == read


@pytest.mark.parametrize(
    ("name", "missing"), [("neither", TOKEN_IDS), ("ids alone", LOGPROBS)]
)
def test_what_a_stock_vllm_did_not_say_is_named(name, missing):
    with pytest.raises(MissingInReplyError) as refused:
        read_completions(body_of(recorded(name)[1]))
    assert refused.value.what == missing


@pytest.mark.parametrize(
    "token", ["a", "token_id:", "token_id:-1", "token_id:1e3", "token_id:" + "9" * 5000]
)
def test_a_token_that_holds_no_id_is_none(token):
    with pytest.raises(MissingInReplyError):
        read_completions(
            reply_of({"logprobs": {"tokens": [token], "token_logprobs": [-1.0]}})
        )


def test_a_logprob_that_is_no_number_leaves_the_others_usable():
    well, null = choice(), choice(logprobs=(None, -1.0))
    read = read_completions(reply_of(well, null))
    usable = [is_usable(*row) for row in zip(*read, strict=True)]
    assert usable == [True, False]
    nan = reply_of(well, choice(logprobs=(float("nan"), -1.0)))
    usable = [is_usable(*row) for row in zip(*read_completions(nan), strict=True)]
    assert usable == [True, False]


@pytest.mark.parametrize("end", ["abort", None, "error"])
def test_half_a_completion_is_of_no_use(end):
    read = read_completions(reply_of(choice(end=end)))
    assert not is_usable(read.tokens[0], read.logprobs[0], read.finish_reasons[0])


@pytest.mark.parametrize("read", [read_completions, read_tokens, read_trl])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"nul",
        b'{"choices": 3, "completion_ids": 3}',
        b'{"choices": [3], "completion_ids": [3]}',
        b'{"choices": [{"token_ids": "5"}], "completion_ids": [["5"]]}',
        b'{"choices": [{"token_ids": [1.5]}], "completion_ids": [[1.5]]}',
        b'{"choices": [{"token_ids": [%s]}], "completion_ids": [[%s]]}'
        % (b"9" * 5000, b"9" * 5000),
        b"[" * 100_000,
    ],
)
def test_what_is_no_reply_is_refused(read, body):
    with pytest.raises((ValueError, LookupError, TypeError, msgspec.MsgspecError)):
        read(body)


def test_a_long_reply_is_read_quickly():
    many = reply_of(*[choice([7] * 20_000, [-0.5] * 20_000) for _ in range(16)])
    began = time.perf_counter()
    read = read_completions(many)
    assert time.perf_counter() - began < 30  # against hanging
    assert len(read.tokens) == 16


def test_tokens_in_and_tokens_out_says_its_logprobs_one_by_one():
    scored = {"content": [{"token_id": 5, "logprob": -0.5, "rank": 1}]}
    told = {"token_ids": [5], "logprobs": scored, "finish_reason": "stop"}
    read = read_tokens(reply_of(told))
    assert read == ([[5]], [[-0.5]], ["stop"])
    with pytest.raises(MissingInReplyError, match=LOGPROBS):
        read_tokens(reply_of({**told, "logprobs": None}))
    with pytest.raises(MissingInReplyError, match=TOKEN_IDS):
        read_tokens(reply_of({"logprobs": scored}))


def test_of_several_logprobs_a_token_of_trl_none_is_taken():
    reply = {"completion_ids": [[5, 6]], "logprobs": [[[-0.5], [-0.5, -1.0]]]}
    read = read_trl(body_of(reply))
    assert read.logprobs == [[-0.5, None]]
    assert not is_usable(read.tokens[0], read.logprobs[0], "stop")
