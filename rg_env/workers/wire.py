"""The protocol between the pool and its workers: frames over a socket, plain values.

A frame is one byte of kind, eight of the call's id, four of length, and the body. Ids
are random, so a frame that a worker sends before it has a call is no reply to the call.
Calls are pickles. Replies are JSON, which is parsed in linear time: a worker that ran
hostile text may send any bytes, and the process that parses them holds the run's keys.
They become plain values or a ValueError, and no code runs:

    None, bool, int, float (also NaN, infinities), str, list, dict    as in JSON
    tuple                       {"tuple": [...]}, because some scorers need a tuple
    Fraction                    {"Fraction": [numerator, denominator]}
    dict with integers as keys  {"pairs": [[key, value], ...]}, also for a dict that
                                looks encoded, such as {"tuple": 1}
    dataclass                   dict of its fields
    scalar of numpy             its value in Python

Not covered: a hostile worker can still send a wrong value of the right type, which
`CallOptions.read` must detect.

Example:
    >>> pack({"size": (2, 3)})
    b'{"size":{"tuple":[2,3]}}'
    >>> unpack(b'{"size":{"tuple":[2,3]}}')
    {'size': (2, 3)}
"""

from __future__ import annotations

import dataclasses
import json
import socket
import struct
import sys
import time
from collections.abc import Callable, Collection, Mapping
from enum import IntEnum
from fractions import Fraction
from typing import Any, NamedTuple

from rg_env.errors import visible

MAX_BODY_BYTES = 64 * 2**20
# The longest reply of a worker. An entry of n_queens with all twelve queens removed has
# 13 MB, all others less than a tenth. Calls that score allow less, see `CallOptions`.
MAX_REPLY_BYTES = 16 * 2**20
MAX_REPORT_CHARS = 8_000
_HEADER = struct.Struct("!BQI")
_CHUNK_BYTES = 2**16


class Frame(IntEnum):
    """The kinds of frames; each comment begins with the sender."""

    READY = 1  # worker: waits for a call; JSON of its pid and its missing layers
    CALL = 2  # pool: run this
    STARTED = 3  # worker: it is prepared; the job and its deadline begin now
    RESULT = 4  # worker: the result of the job
    FAILURE = 5  # worker: (class name, message, traceback) of an exception
    KILLED = 6  # fork server, after the worker's last frame: others ended the worker
    ENDED = 7  # fork server, after the worker's last frame: it ended by itself


_KINDS = frozenset(map(int, Frame))


class Message(NamedTuple):
    """A received frame.

    Attributes:
        call_id: The id of the call that it belongs to; 0 if there is none.
    """

    kind: Frame
    call_id: int
    body: bytes

    @property
    def text(self) -> str:
        """The fork server's description of a worker's end."""
        return visible(self.body[:MAX_REPORT_CHARS].decode(errors="replace"))


class NoFrameError(EOFError):
    """The other side sent bytes that are not a frame, or too long a frame."""


class Channel:
    """Sends and receives frames; one reader and one writer at a time."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._received = bytearray()

    def send(
        self,
        kind: Frame,
        body: bytes = b"",
        timeout_s: float | None = None,
        call_id: int = 0,
    ) -> None:
        """Send one frame.

        Raises:
            TimeoutError: The other side did not read it in time.
            OSError: The other side is gone.
        """
        self._stream.settimeout(timeout_s)
        self._stream.sendall(_HEADER.pack(kind, call_id, len(body)) + body)

    def receive(
        self, timeout_s: float | None = None, max_body_bytes: int = MAX_BODY_BYTES
    ) -> Message:
        """Wait for one whole frame.

        Raises:
            TimeoutError: The frame was not complete in time.
            EOFError: The other side is gone.
            NoFrameError: The other side sent no frame, or one that is too long.
        """
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._fill(_HEADER.size, end_s)
        kind, call_id, length = _HEADER.unpack_from(self._received)
        if length > max_body_bytes or kind not in _KINDS:
            raise NoFrameError("not a frame")
        size = _HEADER.size + length
        self._fill(size, end_s)
        body = bytes(memoryview(self._received)[_HEADER.size : size])
        del self._received[:size]
        return Message(Frame(kind), call_id, body)

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


# -- values ----------------------------------------------------------------------------

# Nesting of lists and dicts; codeio has 10. Copying and writing recurse.
MAX_DEPTH = 100

# An entry of n_queens with all twelve queens removed has 184,616, all others less than
# a tenth.
MAX_CONTAINERS = 250_000

# Python parses the digits of an integer in quadratic time.
MAX_DIGITS = 4_300

# Integers as keys can be chosen to collide. These bounds make that harmless: few keys,
# all with different hashes.
MAX_PAIRS = 1_000
MAX_KEY = 2**53

_LEAVES = frozenset({type(None), bool, int, float, str})


def pack(value: object) -> bytes:
    """Return the JSON of a value.

    Raises:
        TypeError: The value contains a type that is not in the table.
        ValueError: A dict that is sent as pairs has too many keys.
    """
    # msgspec would silently change values: a tuple to a list, NaN to null, an integer
    # key to text, a set or a date to something else.
    return json.dumps(_encode(value), separators=(",", ":")).encode()


def unpack(body: bytes) -> Any:
    """Return the value of untrusted JSON; raises ValueError if it is invalid."""
    # Before anything is built, so brackets in strings count, too.
    if body.count(b"[") + body.count(b"{") > MAX_CONTAINERS:
        raise ValueError(f"more than {MAX_CONTAINERS} lists and dicts")
    try:
        return _decode(json.loads(body, parse_int=_integer), MAX_DEPTH)
    # ArithmeticError: a denominator of 0.
    except (TypeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"no value of the table: {error}") from None


def _encode(value: Any) -> Any:
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind is list:
        return value if _is_flat(value) else [_encode(item) for item in value]
    if kind is tuple:
        return {"tuple": _encode(list(value))}
    if kind is dict:
        looks_encoded = len(value) == 1 and not _DECODERS.keys().isdisjoint(value)
        if looks_encoded or not all(type(key) is str for key in value):
            # The receiver has the same bounds, so it can read everything that is sent.
            _check_keys(value)
            return {"pairs": [[key, _encode(item)] for key, item in value.items()]}
        return {key: _encode(item) for key, item in value.items()}
    if kind is Fraction:
        return {"Fraction": [value.numerator, value.denominator]}
    if dataclasses.is_dataclass(value) and kind is not type:
        return _encode(vars(value))
    # This module does not import numpy; without it, there are no such scalars.
    numpy = sys.modules.get("numpy")
    if numpy and isinstance(value, numpy.generic):
        return _encode(value.item())
    raise TypeError(f"{kind.__module__}.{kind.__qualname__} is not plain data")


def _decode(value: Any, depth_left: int) -> Any:
    kind = type(value)
    if kind in _LEAVES:
        return value
    if not depth_left:
        raise ValueError(f"nested more than {MAX_DEPTH} deep")
    depth_left -= 1
    if kind is list:
        return value if _is_flat(value) else [_decode(v, depth_left) for v in value]
    decoded = {key: _decode(item, depth_left) for key, item in value.items()}
    if len(decoded) == 1:
        ((tag, item),) = decoded.items()
        if tag in _DECODERS:
            return _DECODERS[tag](item)
    return decoded


def _is_flat(values: list[Any]) -> bool:
    """Return whether a list has only leaves; quick, because most are rows of a grid."""
    return _LEAVES.issuperset(map(type, values))


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"an integer of more than {MAX_DIGITS} digits")
    return int(digits)


def _fraction(terms: list[int]) -> Fraction:
    # Fraction("1e999999999") would compute forever.
    if [type(term) for term in terms] != [int, int]:
        raise ValueError("a Fraction is two integers")
    return Fraction(*terms)


def _check_keys(keys: Collection[Any]) -> None:
    if len(keys) > MAX_PAIRS:
        raise ValueError(f"more than {MAX_PAIRS} pairs")
    for key in keys:
        if type(key) is not str and (type(key) is not int or abs(key) >= MAX_KEY):
            raise TypeError(f"{type(key)} is not the key of plain data")


def _dict(pairs: list[Any]) -> dict[str | int, Any]:
    _check_keys([key for key, _ in pairs])
    return dict(pairs)


_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "Fraction": _fraction,
    "pairs": _dict,
}
