"""Bodies of replies, read no further than an honest one goes.

What is at an address may be no inference server, or one gone wrong: a file of
gigabytes, a stream without an end.
"""

from __future__ import annotations

from collections.abc import AsyncIterable

from rg_env.inference.replies import BadReplyError

MEBIBYTE = 2**20
MOST_BYTES_OF_THE_API = 64 * MEBIBYTE

ANY_REPLY_BYTES = 16 * MEBIBYTE
TOKEN_BYTES = 256
"""A completion's reply may have so many bytes, and so many for each token that it may
hold: vLLM writes about 150, with its id, its text and its log-probability, each more
than once."""


class BodyTooLongError(BadReplyError):
    """A body goes on after the most that an honest reply could be."""


def most_bytes(n: int, tokens: int) -> int:
    """Return how long the reply to a request may be.

    Args:
        n: Completions.
        tokens: Of each at most, the prompt's included.
    """
    return ANY_REPLY_BYTES + TOKEN_BYTES * n * tokens


async def read_bounded(blocks: AsyncIterable[bytes], most_bytes: int) -> list[bytes]:
    """Return the blocks of a body.

    Raises:
        BodyTooLongError: There are more bytes.
    """
    read, left = [], most_bytes
    async for block in blocks:
        left -= len(block)
        if left < 0:
            raise BodyTooLongError(
                f"the reply is longer than {most_bytes // MEBIBYTE} MiB, far more than"
                " was asked for"
            )
        read.append(block)
    return read
