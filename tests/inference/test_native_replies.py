"""Replies of `/generate` are read as the host reads them, whatever they hold."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.inference import native_replies
from rg_env.inference.native_replies import read_sglang, read_vllm


def as_host_reads_vllm(reply):
    """Return what atroposlib 0.4.0 makes of a vLLM reply."""
    both = list(zip(reply["logprobs"], reply["finish_reasons"], strict=False))
    ids = [[int(next(iter(p[0].keys()))) for p in rows] for rows, _ in both]
    logprobs = [[next(iter(p[0].values())) for p in rows] for rows, _ in both]
    return ids, logprobs, [reason for _, reason in both]


def as_host_reads_sglang(reply):
    """Return what atroposlib 0.4.0 makes of an SGLang reply."""
    metas = [
        r.get("meta_info", {}) for r in (reply if type(reply) is list else [reply])
    ]
    rows = [meta.get("output_token_logprobs", []) for meta in metas]
    return (
        [[item[1] for item in row] for row in rows],
        [[item[0] for item in row] for row in rows],
        [meta.get("finish_reason") for meta in metas],
    )


LOGPROBS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**40), 2**40),
)
SEQUENCES = st.lists(
    st.lists(st.tuples(st.integers(0, 2**31), LOGPROBS), max_size=5), max_size=4
)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:\r\n")])


def vllm_reply(sequences):
    return {
        "text": ['[{"1":\\u00e9}]'] * len(sequences),
        "finish_reasons": ["stop"] * len(sequences),
        "logprobs": [[[{str(i): p}] for i, p in pairs] for pairs in sequences],
        "token_ids": [[i for i, _ in pairs] for pairs in sequences],
    }


def sglang_reply(sequences):
    return [
        {
            "text": "[[",
            "meta_info": {
                "finish_reason": {"type": "stop", "matched": 2},
                "output_token_logprobs": [[p, i, None] for i, p in pairs],
            },
        }
        for pairs in sequences
    ]


def encoded(reply, separators=(",", ":")):
    return json.dumps(reply, separators=separators).encode()


@given(SEQUENCES, SEPARATORS)
def test_any_vllm_reply_is_read_as_the_host_reads_it(sequences, separators):
    reply = vllm_reply(sequences)
    assert tuple(read_vllm(encoded(reply, separators))) == as_host_reads_vllm(reply)


@given(SEQUENCES, SEPARATORS)
def test_any_sglang_reply_is_read_as_the_host_reads_it(sequences, separators):
    reply = sglang_reply(sequences)
    found = tuple(read_sglang(encoded(reply, separators)))
    assert found == as_host_reads_sglang(reply)


@given(SEQUENCES)
def test_the_usual_shape_is_read_flat(sequences):
    for pairs in sequences:
        vllm = encoded([[{str(i): p}] for i, p in pairs])
        sglang = encoded([[p, i, None] for i, p in pairs])
        both = ([i for i, _ in pairs], [p for _, p in pairs])
        assert native_replies._read_vllm_flat(vllm) == both
        assert native_replies._read_sglang_flat(sglang) == both


UNUSUAL_VLLM = {
    "two entries at a position": {"logprobs": [[[{"5": -0.1, "6": -2.0}]]]},
    "two objects at a position": {"logprobs": [[[{"5": -0.1}, {"6": -2.0}]]]},
    "a key with a sign": {"logprobs": [[[{"+5": -0.1}]]]},
    "a key with spaces": {"logprobs": [[[{" 5 ": -0.1}]]]},
    "a key with zeros before it": {"logprobs": [[[{"005": -0.1}]]]},
    "a logprob that is null": {"logprobs": [[[{"5": None}]]]},
    "a logprob that is a text": {"logprobs": [[[{"5": "-0.1"}]]]},
    "more logprobs than reasons": {"logprobs": [[[{"5": -0.1}]]] * 3},
    "no completions": {"logprobs": []},
    "an empty completion": {"logprobs": [[]]},
    "a logprob beyond all floats": {"logprobs": [[[{"5": -(10**400)}]]]},
}


@pytest.mark.parametrize("case", UNUSUAL_VLLM)
def test_an_unusual_vllm_reply_is_read_as_the_host_reads_it(case):
    reply = {"finish_reasons": ["stop"], **UNUSUAL_VLLM[case]}
    assert tuple(read_vllm(encoded(reply))) == as_host_reads_vllm(reply)


UNUSUAL_SGLANG = {
    "one object": {"meta_info": {"output_token_logprobs": [[-0.5, 7, None]]}},
    "texts at the tokens": [
        {"meta_info": {"output_token_logprobs": [[-0.5, 7, "a"], [-1, 8, "],["]]}}
    ],
    "pairs": [{"meta_info": {"output_token_logprobs": [[-0.5, 7]]}}],
    "a logprob that is null": [
        {"meta_info": {"output_token_logprobs": [[None, 7, 0]]}}
    ],
    "no meta_info": [{"text": "a"}],
    "no logprobs": [{"meta_info": {"finish_reason": None}}],
    "no results": [],
}


@pytest.mark.parametrize("case", UNUSUAL_SGLANG)
def test_an_unusual_sglang_reply_is_read_as_the_host_reads_it(case):
    reply = UNUSUAL_SGLANG[case]
    assert tuple(read_sglang(encoded(reply))) == as_host_reads_sglang(reply)


def test_a_logprob_that_json_does_not_know_is_read_as_the_host_reads_it():
    rows = [(5, float("nan")), (6, float("-inf"))]
    vllm = read_vllm(encoded(vllm_reply([rows])))
    sglang = read_sglang(encoded(sglang_reply([rows])))
    for found in (vllm, sglang):
        assert found.tokens == [[5, 6]]
        assert math.isnan(found.logprobs[0][0]) and found.logprobs[0][1] == -math.inf


MALFORMED = {
    "no JSON": b"<html>",
    "nothing": b"",
    "no fields": b"{}",
    "null": b'{"logprobs": null, "finish_reasons": null}',
    "a list": b"[]",
    "a key that is no number": encoded(
        {"logprobs": [[[{"five": -0.1}]]], "finish_reasons": ["stop"]}
    ),
    "a key that is a fraction": encoded(
        {"logprobs": [[[{"5.5": -0.1}]]], "finish_reasons": ["stop"]}
    ),
    "an empty key": encoded({"logprobs": [[[{"": -0.1}]]], "finish_reasons": ["stop"]}),
    "an empty position": encoded({"logprobs": [[[]]], "finish_reasons": ["stop"]}),
    "numbers alone": encoded({"logprobs": [[-0.1]], "finish_reasons": ["stop"]}),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_what_is_no_vllm_reply_is_an_error_as_it_is_for_the_host(case):
    with pytest.raises(Exception):  # noqa: B017, PT011 - the host raises as many kinds
        as_host_reads_vllm(json.loads(MALFORMED[case]))
    with pytest.raises(Exception):  # noqa: B017, PT011
        read_vllm(MALFORMED[case])


def test_ids_that_are_fractions_are_not_taken_for_whole_numbers():
    reply = [{"meta_info": {"output_token_logprobs": [[-0.5, 7.5, None]]}}]
    assert read_sglang(encoded(reply)).tokens == [[7.5]]


def test_there_is_a_pause_between_two_completions():
    pauses = []
    read_vllm(encoded(vllm_reply([[(1, -0.5)]] * 3)), lambda: pauses.append(1))
    read_sglang(encoded(sglang_reply([[(1, -0.5)]] * 3)), lambda: pauses.append(1))
    assert len(pauses) == 6
