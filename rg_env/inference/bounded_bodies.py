"""Bodies of replies, read no further than an honest one goes.

What is at an address may be no inference server, or one gone wrong: a file of
gigabytes, a stream without an end.
"""

from __future__ import annotations

from collections.abc import AsyncIterable

MEBIBYTE = 2**20

MOST_BYTES_OF_A_TOKEN = 1024
"""With its id, its text and its log-probability it takes about a hundred."""

MOST_TOKENS = 2**16
"""Of a completion whose request sets no limit."""

MOST_BYTES_OF_A_CHAT = 64 * MEBIBYTE
MOST_BYTES_OF_THE_API = 64 * MEBIBYTE


class BodyTooLongError(ValueError):
    """A body goes on after the most that an honest reply could be."""


async def read_bounded(blocks: AsyncIterable[bytes], most_bytes: int) -> list[bytes]:
    """Return the blocks of a body.

    Raises:
        BodyTooLongError: There are more.
    """
    read, left = [], most_bytes
    async for block in blocks:
        left -= len(block)
        if left < 0:
            mebibytes = most_bytes // MEBIBYTE
            raise BodyTooLongError(f"the reply is longer than {mebibytes} MiB")
        read.append(block)
    return read
