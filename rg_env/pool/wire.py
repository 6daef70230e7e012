"""What travels between the pool and its workers: frames, and what they hold.

A frame is one byte of kind, four bytes of length, and the body. Calls travel to
the worker as ordinary pickles. Results travel back as pickles that are read with
everything forbidden but plain data, because a worker that ran hostile text must
not be able to run code in the process that holds the run's keys:

    plain values (None, bool, numbers, str, bytes, list, tuple, dict, set)
    Fraction, Decimal, datetime and its kin
    dataclasses, named tuples and enums of this project, from modules that the
    reader has imported already; dataclasses are rebuilt through their constructor

numpy scalars arrive as the Python value they hold. Not covered: a hostile worker can
still send a wrong value, or one that takes long to read within MAX_BODY_BYTES.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
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
from typing import Any

MAX_BODY_BYTES = 64 * 2**20
PROTOCOL = 5
_HEADER = struct.Struct("!BI")
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


class Channel:
    """Frames over a stream socket; one reader and one writer at a time."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._received = bytearray()

    def send(
        self, kind: Frame, body: bytes = b"", timeout_s: float | None = None
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
        self._stream.sendall(_HEADER.pack(kind, len(body)) + body)

    def receive(self, timeout_s: float | None = None) -> tuple[Frame, bytes]:
        """Wait for one whole frame, however slowly it comes.

        Raises:
            TimeoutError: It was not there in time.
            EOFError: The other side is gone, or does not send frames.
        """
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._fill(_HEADER.size, end_s)
        kind, length = _HEADER.unpack_from(self._received)
        if length > MAX_BODY_BYTES or kind not in _KINDS:
            raise EOFError("not a frame")
        size = _HEADER.size + length
        self._fill(size, end_s)
        body = bytes(memoryview(self._received)[_HEADER.size : size])
        del self._received[:size]
        return Frame(kind), body

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
    is_plain = (
        dataclasses.is_dataclass(found)
        or issubclass(found, enum.Enum)
        or (issubclass(found, tuple) and hasattr(found, "_fields"))
    )
    return found if is_plain and found.__module__ == module else None
