"""Frames that are no frames, and bodies that are too long."""

import socket

import pytest

from rg_env.workers.wire import Channel, Frame
from tests.support.worker_attacks import LONG_S


def test_frame_that_is_too_long_or_of_no_kind_is_not_received():
    for header in (b"\x04" + 8 * b"\0" + 4 * b"\xff", b"\x63" + 12 * b"\0"):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(header)
            with pytest.raises(EOFError, match="not a frame"):
                Channel(ours).receive(LONG_S)


def test_what_has_come_is_unread_until_it_is_received():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel, other = Channel(ours), Channel(theirs)
        found = [channel.has_unread()]
        other.send(Frame.RESULT, b"one", number=1)
        other.send(Frame.RESULT, b"two", number=2)
        for _ in range(2):
            found += [channel.has_unread(), channel.has_unread()]
            channel.receive(LONG_S)
        found.append(channel.has_unread())
        theirs.close()
        assert [*found, channel.has_unread()] == [False, *4 * [True], False, False]
