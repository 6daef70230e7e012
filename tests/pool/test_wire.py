"""What arrives from a worker, and what a hostile one cannot send."""

import pickle
import socket
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy
import pytest
from worker_attacks import LONG_S, evaluate

from rg_env.pool.fork_server_program import Order
from rg_env.pool.pool_errors import JobFailed
from rg_env.pool.wire import MAX_BODY_BYTES, Channel, Frame, pack_result, unpack_result

ORDER = Order(3, ["a"], [], "b", None)


@pytest.mark.parametrize(
    "value",
    [
        {"a": (1, [2.5, None]), "b": {3}, "c": b"x", "d": 1j, "e": True, "f": "x"},
        Fraction(1, 3),
        Decimal("1.5"),
        datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=1))),
        datetime(2026, 1, 2, tzinfo=timezone.utc).timetz(),
        [ORDER],
    ],
)
def test_plain_data_arrives_with_its_types(value):
    arrived = unpack_result(pack_result(value))
    assert (arrived, type(arrived)) == (value, type(value))


@pytest.mark.parametrize("kind", ["str_", "int64", "float32", "bool_"])
def test_numpy_scalar_arrives_as_the_value_it_holds(kind):
    value = unpack_result(pack_result(getattr(numpy, kind)(2)))
    assert type(value) in (str, int, float, bool)


@pytest.mark.processes
def test_plain_data_arrives_from_a_worker(pool):
    numpy_scalar = "__import__('numpy').int64(2)"
    value = evaluate(pool, f"[order, {numpy_scalar}]", order=ORDER)
    assert (value, type(value[1])) == ([ORDER, 2], int)


@pytest.mark.processes
def test_large_arguments_and_results_pass(pool):
    text = "x" * 5_000_000
    assert pool.call(str, text, deadline_s=LONG_S) == text


@pytest.mark.processes
def test_result_that_is_not_plain_data_becomes_job_failed(pool):
    with pytest.raises(JobFailed, match="UnreadableResult: pathlib"):
        pool.call(Path, "x", deadline_s=LONG_S)


@pytest.mark.processes
def test_result_does_not_run_in_the_caller(pool, tmp_path):
    mark = tmp_path / "mark"
    trap = "lambda self: (__import__('os').mkdir, (mark,))"
    with pytest.raises(JobFailed, match="UnreadableResult"):
        evaluate(pool, f"type('T', (), {{'__reduce__': {trap}}})()", mark=str(mark))
    assert not mark.exists()


def test_result_cannot_change_a_class_of_the_caller():
    build = b"crg_env.pool.fork_server_program\nOrder\nN}Vpreload\nVx\ns\x86b."
    with pytest.raises(TypeError):
        unpack_result(build)
    assert not hasattr(Order, "preload")


@pytest.mark.parametrize(
    "name",
    [
        b"os\nsystem",
        b"rg_env.pool.fork_server\nsubprocess.Popen",
        b"rg_env.pool.wire\nChannel",
    ],
)
def test_result_cannot_name_what_is_not_plain_data(name):
    with pytest.raises(pickle.UnpicklingError, match="not plain data"):
        unpack_result(b"c" + name + b"\n.")


def test_fraction_of_a_text_is_not_built():
    endless = b"cfractions\nFraction\n(V1e999999999\nI1\ntR."
    with pytest.raises(pickle.UnpicklingError, match="two integers"):
        unpack_result(endless)


def test_frame_that_is_too_long_or_of_no_kind_is_not_received():
    for header in (b"\x04" + 8 * b"\0" + 4 * b"\xff", b"\x63" + 12 * b"\0"):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(header)
            with pytest.raises(EOFError, match="not a frame"):
                Channel(ours).receive(LONG_S)


def test_body_that_is_too_long_is_not_sent():
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ValueError, match="are over"):
        Channel(ours).send(Frame.RESULT, bytes(MAX_BODY_BYTES + 1))
