"""The values that workers can send, and the bytes of hostile ones."""

import contextlib
import json
import pickle
import random
import socket
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rg_env.reward.score import FormatScores
from rg_env.workers.call import JobError
from rg_env.workers.wire import (
    MAX_CONTAINERS,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_PAIRS,
    MAX_REPLY_BYTES,
    Channel,
    pack,
    unpack,
)
from tests.support.worker_attacks import LONG_S

SHORT_S = 0.05
KEYS = st.text() | st.integers(1 - 2**53, 2**53 - 1) | st.just("tuple")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda items: (
        st.lists(items)
        | st.lists(items).map(tuple)
        | st.dictionaries(KEYS, items)
        | st.fractions()
    ),
)


def test_frame_that_is_too_long_or_of_an_unknown_kind_is_refused():
    for header in (b"\x04" + 8 * b"\0" + 4 * b"\xff", b"\x63" + 12 * b"\0"):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(header)
            with pytest.raises(EOFError, match="not a frame"):
                Channel(ours).receive(LONG_S)


def to_json(value):
    return json.dumps(value).encode()


def seconds_to_read(body):
    """Return the least CPU time of three reads; garbage collection slows some down."""

    def once():
        began = time.thread_time()
        with contextlib.suppress(ValueError):
            unpack(body)
        return time.thread_time() - began

    return min(once() for _ in range(3))


@pytest.mark.slow
@given(PLAIN)
def test_plain_data_arrives_with_its_types(value):
    assert repr(unpack(pack(value))) == repr(value)


@pytest.mark.parametrize("name", ["tuple", "Fraction", "pairs"])
def test_dict_that_looks_encoded_arrives_unchanged(name):
    value = {name: [1, 2], "other": {name: [[1, 2]]}}
    assert unpack(pack([value, {name: 3}])) == [value, {name: 3}]


@pytest.mark.parametrize("kind", ["str_", "int64", "float32", "float64", "bool_"])
def test_numpy_scalar_arrives_as_the_value_it_holds(kind):
    value = unpack(pack(getattr(numpy, kind)(2)))
    assert type(value) in (str, int, float, bool)


def test_dataclass_arrives_as_the_dict_of_its_fields():
    fields = {"bare": 1.0, "tagged": None, "value": 1.0}
    assert unpack(pack([FormatScores(**fields)])) == [fields]


@pytest.mark.parametrize(
    "value",
    [
        {1},
        b"x",
        1j,
        Decimal(1),
        Path(),
        FormatScores,
        {(1, 2): 3},
        {2**53: 1},
        dict.fromkeys(range(MAX_PAIRS + 1)),
    ],
)
def test_values_that_are_not_plain_data_are_not_sent(value):
    with pytest.raises((TypeError, ValueError)):
        pack([value])


def pairs_of(keys):
    return to_json({"pairs": [[key, 0] for key in keys]})


def nested(depth):
    return b"[" * depth + b"]" * depth


HOSTILE = {
    "pickle": pickle.dumps([1, 2]),
    "no JSON": b"[1, 2",
    "two values": b"1 2",
    "no text": b"\xff\xfe\xfd",
    "empty": b"",
    "endless integer": b"9" * (MAX_DIGITS + 1),
    "huge integer": b"9" * MAX_REPLY_BYTES,
    "too many lists": b"[" + b"[]," * MAX_CONTAINERS + b"0]",
    "too deep": nested(MAX_DEPTH + 2),
    "far too deep": nested(MAX_REPLY_BYTES // 2),
    "dicts far too deep": b'{"a":' * 10**6,
    "tuples too deep": b'{"tuple":[' * MAX_DEPTH + b"]}" * MAX_DEPTH,
    "tuple of a number": to_json({"tuple": 3}),
    "Fraction of a text": to_json({"Fraction": ["1e999999999", 1]}),
    "Fraction of one number": to_json({"Fraction": [1]}),
    "Fraction by zero": to_json({"Fraction": [1, 0]}),
    "Fraction of truths": to_json({"Fraction": [True, True]}),
    "keys that are lists": to_json({"pairs": [[[1], 1]]}),
    "keys that are true": to_json({"pairs": [[True, 1]]}),
    "keys of one hash": pairs_of(k * (2**61 - 1) for k in range(2, 900)),
    "too many pairs": pairs_of(range(MAX_PAIRS + 1)),
    "pairs of three": to_json({"pairs": [[1, 2, 3]]}),
}


@pytest.mark.slow
@pytest.mark.parametrize("body", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_body_is_a_value_error_at_once(body):
    with pytest.raises(ValueError, match=r"."):
        unpack(body)
    assert seconds_to_read(body) < SHORT_S + len(body) / 2**25


CHANGED = [
    *(body for body in HOSTILE.values() if len(body) < 10_000),
    pack([(0.5, "partial", False, 0.5, None)] * 8),
    pack(("ValueError", "message", "Traceback")),
    pack({"question": "q", "metadata": {"a": {1: (Fraction(1, 3), [2.5, None])}}}),
]


@pytest.mark.slow
@settings(max_examples=500)
@given(st.sampled_from(CHANGED), st.integers(0, 2**32))
def test_changed_body_is_a_value_or_a_value_error_at_once(body, seed):
    chance = random.Random(seed)
    changed = bytearray(body)
    for _ in range(chance.randint(1, 8)):
        index = chance.randrange(len(changed) + 1)
        other = chance.choice(CHANGED)
        cut = chance.randrange(len(other) + 1)
        changed[index : index + chance.randint(0, 4)] = chance.choice(
            (
                bytes([chance.randrange(256)]),
                bytes([chance.choice(b'[]{}",:0123456789eE-.')]) * chance.randint(1, 9),
                other[cut : cut + chance.randint(0, 40)],
            )
        )
    with contextlib.suppress(ValueError):
        pack(unpack(bytes(changed)))
    assert seconds_to_read(bytes(changed)) < SHORT_S


@pytest.mark.processes
def test_large_result_passes_and_one_that_is_too_long_is_a_job_error(pool):
    text = "x" * 3_000_000
    assert pool.call(str, text, deadline_s=LONG_S) == text
    with pytest.raises(JobError, match="bytes"):
        pool.call(str, "x" * MAX_REPLY_BYTES, deadline_s=LONG_S)
