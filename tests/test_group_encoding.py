"""A group arrives at the trainer as the framework would send it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env import group_encoding
from rg_env.group_encoding import encode_groups
from tests.support.groups import GROUPS, decoded, group


@pytest.mark.slow
@given(st.one_of(GROUPS, st.lists(GROUPS, max_size=3)))
def test_any_group_arrives_as_the_framework_would_send_it(groups):
    assert decoded(*encode_groups(groups)) == json.loads(json.dumps(groups))


@pytest.mark.parametrize(
    ("tokens", "is_remote", "is_compressed"),
    [(3, True, False), (500, True, True), (500, False, False), (50_000, False, True)],
)
def test_long_bodies_are_compressed_on_this_machine_from_a_mebibyte_on(
    tokens, is_remote, is_compressed
):
    sent = group(tokens, text="é \U0001f600")
    body, headers = encode_groups(sent, is_remote=is_remote)
    assert ("Content-Encoding" in headers) is is_compressed
    assert decoded(body, headers) == sent


def test_a_lone_surrogate_is_replaced_because_the_api_cannot_send_it():
    found = decoded(*encode_groups(group(text="a \ud800 b \U0001f600")))
    assert found["messages"][0][0]["content"] == "a \ufffd b \U0001f600"


def test_other_threads_run_between_the_rows_of_a_group(monkeypatch):
    pauses = []
    monkeypatch.setattr(group_encoding, "release_gil", lambda: pauses.append(1))
    encode_groups(group())
    assert len(pauses) == 10  # one a row: of tokens, masks, scores, logprobs, messages
