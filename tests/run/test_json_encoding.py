"""Groups as bytes: what the framework would send, compressed where it is long."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.run.json_encoding import encode_groups
from tests.support.groups import GROUPS, decoded, group


@pytest.mark.slow
@given(st.one_of(GROUPS, st.lists(GROUPS, max_size=3)))
def test_any_group_arrives_as_the_host_would_send_it(groups):
    assert decoded(*encode_groups(groups)) == json.loads(json.dumps(groups))


def test_short_bodies_go_as_they_are_and_long_ones_compressed():
    for tokens, is_compressed in ((3, False), (500, True)):
        body, headers = encode_groups(group(tokens, text="é \U0001f600"))
        assert ("Content-Encoding" in headers) is is_compressed
        assert decoded(body, headers) == group(tokens, text="é \U0001f600")


def test_a_body_that_stays_on_this_machine_is_compressed_from_a_mebibyte_on():
    for tokens, is_compressed in ((500, False), (50_000, True)):
        body, headers = encode_groups(group(tokens, text="x"), is_far=False)
        assert ("Content-Encoding" in headers) is is_compressed
        assert decoded(body, headers) == group(tokens, text="x")


def test_half_a_character_in_a_message_is_replaced_because_the_api_cannot_send_it():
    found = decoded(*encode_groups(group(text="a \ud800 b \U0001f600")))
    assert found["messages"][0][0]["content"] == "a \ufffd b \U0001f600"


def test_half_a_character_in_a_message_leaves_the_lists_of_numbers_fast():
    pauses = []
    encode_groups(group(), lambda: pauses.append(1))
    assert len(pauses) == 10  # one a row: of tokens, masks, scores, logprobs, messages
