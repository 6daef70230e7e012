"""What travels between the pool and its workers: frames, and what they hold.

A frame is one byte of kind, eight of a number, four of length, and the body. The number
is the call's, a random one: what a worker sends ahead of a call answers nothing. Calls
travel to the worker as ordinary pickles. Results travel back as pickles that are read
with everything forbidden but plain data, because a worker that ran hostile text must
not be able to run code in the process that holds the run's keys:

    plain values (None, bool, numbers, str, bytes, list, tuple, dict, set)
    Fraction of integers of bounded size, Decimal, datetime and its kin
    dataclasses and named tuples of this project, from modules that the reader has
    imported already; dataclasses are rebuilt through their constructor. No enums: the
    reader would get its own member, and a pickle can rename that

numpy scalars arrive as the Python value they hold. Not covered: a hostile worker can
still send a wrong value, which `Trust.read` of a call is for.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import io
import pickle
import socket
import struct
import sys
import time
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any, NamedTuple

MAX_BODY_BYTES = 64 * 2**20
PROTOCOL = 5
MAX_FRACTION_BITS = 20_000
"""Longer integers take the reader noticeable time to reduce."""
_HEADER = struct.Struct("!BQI")
_CHUNK_BYTES = 2**16
_PROJECT = __name__.partition(".")[0] + "."


class Frame(IntEnum):
    """The kinds of frames, and who sends them."""

    READY = 1  # worker: forked, waiting for a call; JSON of the layers it lacks
    CALL = 2  # pool: run this
    STARTED = 3  # worker: the job begins now, and so does its deadline
    RESULT = 4  # worker: what the job returned
    FAILURE = 5  # worker: (kind, message, detail) of what it raised
    DEATH = 6  # fork server, after the worker's last word: how it ended


_KINDS = frozenset(map(int, Frame))


class Message(NamedTuple):
    """A frame that was received.

    Attributes:
        kind: Its kind.
        number: Of the call that it belongs to, 0 for none.
        body: What it holds.
    """

    kind: Frame
    number: int
    body: bytes


class Channel:
    """Frames over a stream socket; one reader and one writer at a time."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._received = bytearray()

    def send(
        self,
        kind: Frame,
        body: bytes = b"",
        timeout_s: float | None = None,
        number: int = 0,
    ) -> None:
        """Send one frame.

        Raises:
            TimeoutError: The other side did not take it in time.
            OSError: The other side is gone.
            ValueError: The body is longer than MAX_BODY_BYTES.
        """
        if len(body) > MAX_BODY_BYTES:
            raise ValueError(f"{len(body)} bytes are over the {MAX_BODY_BYTES} allowed")
        self._stream.settimeout(timeout_s)
        self._stream.sendall(_HEADER.pack(kind, number, len(body)) + body)

    def receive(
        self, timeout_s: float | None = None, max_body_bytes: int = MAX_BODY_BYTES
    ) -> Message:
        """Wait for one whole frame, however slowly it comes.

        Raises:
            TimeoutError: It was not there in time.
            EOFError: The other side is gone, or does not send frames of this size.
        """
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._fill(_HEADER.size, end_s)
        kind, number, length = _HEADER.unpack_from(self._received)
        if length > max_body_bytes or kind not in _KINDS:
            raise EOFError("not a frame")
        size = _HEADER.size + length
        self._fill(size, end_s)
        body = bytes(memoryview(self._received)[_HEADER.size : size])
        del self._received[:size]
        return Message(Frame(kind), number, body)

    def has_unread(self) -> bool:
        """Say whether something has come that nobody has received yet."""
        if self._received:
            return True
        try:
            self._stream.settimeout(0)
            return bool(self._stream.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    def close(self) -> None:
        """Close the socket; may be called twice."""
        self._stream.close()

    def _fill(self, size: int, end_s: float | None) -> None:
        while len(self._received) < size:
            remaining_s = None if end_s is None else end_s - time.monotonic()
            if remaining_s is not None and remaining_s <= 0:
                raise TimeoutError
            self._stream.settimeout(remaining_s)
            try:
                chunk = self._stream.recv(_CHUNK_BYTES)
            except ConnectionError as error:
                raise EOFError from error
            if not chunk:
                raise EOFError
            self._received += chunk


def pack_result(value: object) -> bytes:
    """Pickle a job's result; raises whatever pickling it raises."""
    file = io.BytesIO()
    _ResultPickler(file, PROTOCOL).dump(value)
    return file.getvalue()


def unpack_result(body: bytes) -> Any:
    """Read a result without running anything of the sender's choice.

    Raises:
        pickle.UnpicklingError: It holds something that is not plain data.
        Exception: It is damaged; a hostile pickle can raise any kind.
    """
    return _ResultUnpickler(io.BytesIO(body)).load()


class _ResultPickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, type):
            return NotImplemented
        if kind is Fraction:
            return Fraction, (value.numerator, value.denominator)
        if _is_numpy_scalar(value):
            plain = value.item()
            return type(plain), (plain,)
        if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value) if field.init]
            return kind, tuple(getattr(value, name) for name in names)
        if isinstance(value, tuple):
            return kind, tuple(value)
        return NotImplemented


def _is_numpy_scalar(value: Any) -> bool:
    # There is none before somebody has imported numpy, and this module does not.
    return isinstance(value, getattr(sys.modules.get("numpy"), "generic", ()))


def _build_fraction(numerator: int, denominator: int) -> Fraction:
    # From text, Fraction("1e999999999") would hang the reader.
    if type(numerator) is not int or type(denominator) is not int:
        raise pickle.UnpicklingError("a Fraction is two integers")
    if max(numerator.bit_length(), denominator.bit_length()) > MAX_FRACTION_BITS:
        raise pickle.UnpicklingError("a Fraction of integers that are too long")
    return Fraction(numerator, denominator)


_PLAIN_TYPES = (
    *(bool, int, float, complex, str, Decimal),
    *(datetime.date, datetime.time, datetime.datetime),
    *(datetime.timedelta, datetime.timezone),
)
_ALLOWED: dict[tuple[str, str], Any] = {
    ("fractions", "Fraction"): _build_fraction,
    **{(kind.__module__, kind.__name__): kind for kind in _PLAIN_TYPES},
}


class _ResultUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        found = _ALLOWED.get((module, name)) or _find_project_type(module, name)
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} is not plain data")
        # A pickle can set attributes on whatever it names: give it a throw-away.
        return functools.partial(found)


def _find_project_type(module: str, name: str) -> type | None:
    found = getattr(sys.modules.get(module), name, None)
    if not module.startswith(_PROJECT) or not isinstance(found, type):
        return None
    is_named_tuple = issubclass(found, tuple) and hasattr(found, "_fields")
    is_plain = dataclasses.is_dataclass(found) or is_named_tuple
    return found if is_plain and found.__module__ == module else None
