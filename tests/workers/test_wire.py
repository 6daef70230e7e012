"""Frames that are no frames, and bodies that are too long."""

import socket

import pytest

from rg_env.workers.wire import Channel
from tests.support.worker_attacks import LONG_S


def test_frame_that_is_too_long_or_of_no_kind_is_not_received():
    for header in (b"\x04" + 8 * b"\0" + 4 * b"\xff", b"\x63" + 12 * b"\0"):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(header)
            with pytest.raises(EOFError, match="not a frame"):
                Channel(ours).receive(LONG_S)
