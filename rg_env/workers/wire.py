"""Frames: what the pool and its workers send each other over a socket.

A frame is one byte of kind, eight of a number, four of length, and the body. The number
is the call's, a random one: what a worker sends ahead of a call answers nothing. Calls
travel to the worker as pickles, what it sends as plain values (plain_values.py).
"""

from __future__ import annotations

import socket
import struct
import time
from enum import IntEnum
from typing import NamedTuple

from rg_env.errors import printable

MAX_BODY_BYTES = 64 * 2**20
MAX_REPLY_BYTES = 16 * 2**20
"""The longest reply of a worker: an entry of n_queens with all of twelve queens removed
has 13 MB, all others less than a tenth. Calls that score take less, see `Trust`."""
MAX_REPORT_CHARS = 8_000
_HEADER = struct.Struct("!BQI")
_CHUNK_BYTES = 2**16


class Frame(IntEnum):
    """The kinds of frames, and who sends them."""

    READY = 1  # worker: waits for a call; JSON of its pid and the layers it lacks
    CALL = 2  # pool: run this
    STARTED = 3  # worker: it is prepared; the job begins now, and so does its deadline
    RESULT = 4  # worker: what the job returned
    FAILURE = 5  # worker: (kind, message, detail) of what it raised
    KILLED = 6  # fork server, after the worker's last word: how others ended it
    ENDED = 7  # the same: how it ended by what it did itself


_KINDS = frozenset(map(int, Frame))


class Message(NamedTuple):
    """A frame that was received; its number is that of a call, 0 for none."""

    kind: Frame
    number: int
    body: bytes

    @property
    def text(self) -> str:
        """What the fork server says of an end."""
        text = self.body[:MAX_REPORT_CHARS].decode(errors="replace")
        return printable(text, keep="\n")


class NoFrameError(EOFError):
    """What the other side sent is no frame of an allowed size."""


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
            EOFError: The other side is gone.
            NoFrameError: It does not send frames of this size.
        """
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._fill(_HEADER.size, end_s)
        kind, number, length = _HEADER.unpack_from(self._received)
        if length > max_body_bytes or kind not in _KINDS:
            raise NoFrameError("not a frame")
        size = _HEADER.size + length
        self._fill(size, end_s)
        body = bytes(memoryview(self._received)[_HEADER.size : size])
        del self._received[:size]
        return Message(Frame(kind), number, body)

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
