"""Of a reply it is said whether it is one, and of a completion whether it is of use."""

import asyncio
import json

import pytest

from rg_env.inference.readers import read_atropos, read_completions, read_sglang
from rg_env.inference.replies import (
    BadReplyError,
    UnusableReplyError,
    check_some_usable,
    read_reply,
    why_unusable,
)
from tests.support.odd_servers import HTML, refusal

WHOLE = ([5, 6], [-0.5, -1.0])


@pytest.mark.parametrize(
    "end", ["stop", "length", "repetition", "tool_calls", "eos", {"type": "stop"}]
)
def test_an_end_of_the_models_making_is_of_use_whatever_it_is_called(end):
    assert why_unusable(*WHOLE, end) is None


ENDS = {"abort": "abort", "error": "error", "content_filter: X": "content_filter"}


@pytest.mark.parametrize("end", [*ENDS, None, ""])
def test_an_end_of_the_servers_making_leaves_half_a_completion(end):
    assert why_unusable(*WHOLE, end) == f"finish_reason {ENDS.get(end, 'none')}"
    assert why_unusable(*WHOLE, {"type": end, "message": "m"}) is not None


@pytest.mark.parametrize("end", [7, ["stop"], {"type": ["stop"]}])
def test_an_end_that_is_no_word_is_none(end):
    assert why_unusable(*WHOLE, end) is not None


@pytest.mark.parametrize(
    ("ids", "logprobs", "why"),
    [
        ([], [], "no token"),
        ([5], [], "log-probability"),
        ([5, 6], [-1.0, None], "log-probability"),
        ([5], [float("nan")], "log-probability"),
        ([5], [float("-inf")], "log-probability"),
    ],
)
def test_what_a_trainer_cannot_use_is_said(ids, logprobs, why):
    assert why in why_unusable(ids, logprobs, "stop")


def test_one_completion_of_use_is_enough():
    check_some_usable(["finish_reason abort", None])
    with pytest.raises(UnusableReplyError, match="2 completions is usable: fin"):
        check_some_usable(["finish_reason abort", "no token"])
    with pytest.raises(UnusableReplyError, match="0 completions"):
        check_some_usable([])


BODIES = {
    "an error": (json.dumps(refusal("no quota left")), "no quota left"),
    "a text": ("try later", "try later"),
    "a page": (HTML, "Welcome"),
    "null": ("null", "null"),
    "a list": ("[1, 2]", "[1, 2]"),
    "nothing": ("", "empty"),
    "what nobody ends": ("[" * 10_000, "[[["),
}


@pytest.mark.parametrize("read", [read_completions, read_atropos, read_sglang])
@pytest.mark.parametrize("case", BODIES)
def test_a_reply_of_another_form_is_said_in_its_own_words(case, read):
    body, said = BODIES[case]
    with pytest.raises(BadReplyError, match="a reply without completions: ") as bad:
        asyncio.run(read_reply(read, [body.encode()]))
    assert said in str(bad.value) and len(str(bad.value)) < 300


def test_a_long_reply_of_another_form_is_read_off_the_loop_and_said_as_well():
    blocks = [b'{"error": "later", "more": "', b"x" * 2**18, b'"}']
    with pytest.raises(BadReplyError, match="without completions"):
        asyncio.run(read_reply(read_completions, blocks))
