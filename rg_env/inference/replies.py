"""What a reply of token ids comes to, and whether a completion is of use.

A completion is of use where it is whole, or cut at its limit: where its end is of the
model's making, and each of its tokens has a log-probability that is a number. What the
server broke off is asked for again, and is never the model's wrong answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from rg_env.inference.refusals import LONGEST_READ, said_in
from rg_env.off_loop import breathe, no_breath, off_loop

T = TypeVar("T")

SHORT_REPLY_BYTES = 2**17
"""A reply up to here is read in half a millisecond, in place."""

TOKEN_IDS, LOGPROBS = "token ids", "log-probabilities"

KNOWN_ENDS = frozenset({"stop", "length", "repetition", "tool_calls", "function_call"})
"""Ends of the model's making, its limit among them."""

NOT_WHOLE = frozenset(
    {"abort", "aborted", "cancelled", "content_filter", "error", "none"}
    | {"insufficient_system_resource"}
)
"""Ends of the server's making, which leave half a completion."""

NO_SUCH_FORM = (
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
)
"""What reading a reply raises that is of another form."""

TokenReply = tuple[list[int], list[list[int]], list[list[float]], list[Any]]
"""Prompt tokens; tokens, log-probabilities and finish reason of each completion."""

Breathe = Callable[[], None]


class BadReplyError(ValueError):
    """A reply that holds nothing of use; the text says what is there instead."""


class MissingInReplyError(BadReplyError):
    """A reply is well and lacks what a trainer needs."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the reply has no {what}")


class UnusableReplyError(BadReplyError):
    """Not one completion of a reply is of use, which may pass."""


class Generated(NamedTuple):
    """The completions of a reply, as the framework's clients return them.

    Attributes:
        tokens: Shape (G, T_i).
        logprobs: Shape (G, T_i).
        finish_reasons: The server's words, or SGLang's objects, shape (G,).
    """

    tokens: list[list[int]]
    logprobs: list[list[float]]
    finish_reasons: list[Any]


# -- of use or not ---------------------------------------------------------------------


def end_of(reason: Any) -> Any:
    """Return the word for why a completion ended, which SGLang puts in an object."""
    return reason.get("type", "stop") if isinstance(reason, dict) else reason


def why_cut_off(reason: Any) -> str | None:
    """Return why a completion is not whole, by its finish reason; None where it is."""
    end = end_of(reason) or "none"
    # Some say more behind a colon, as "content_filter: RECITATION".
    word = end.partition(":")[0].lower() if isinstance(end, str) else "none"
    return f"finish_reason {word}" if word in NOT_WHOLE else None


def why_unusable(
    tokens: Sequence[int], logprobs: Sequence[float], reason: Any
) -> str | None:
    """Return why a completion is of no use to a trainer; None where it is of use.

    A model that says nothing still says its end, with a log-probability. Without a
    token there is nothing to train on: a trainer fails, and an end of our own would
    need a probability that nobody has measured.

    Args:
        tokens: Shape (T,).
        logprobs: Shape (T,).
        reason: Why it ended, as the server gives it.
    """
    cut_off = why_cut_off(reason)
    if cut_off is not None:
        return cut_off
    if not tokens:
        return "no token"
    try:
        # A sum is finite only if all of its parts are, and faster than asking each.
        is_finite = math.isfinite(sum(logprobs))
    except TypeError:  # None, as SGLang writes a NaN
        is_finite = False
    if not is_finite or len(tokens) != len(logprobs):
        return "a log-probability that is no number, or none for a token"
    return None


def check_some_usable(reasons: Sequence[str | None]) -> None:
    """Raise `UnusableReplyError` where no completion is of use.

    Args:
        reasons: Why each is not, None for one that is.
    """
    if None not in reasons:
        why = f": {reasons[0]}" if reasons else ""
        raise UnusableReplyError(f"none of {len(reasons)} completions is usable{why}")


def check_usable(generated: Generated) -> None:
    """Raise `UnusableReplyError` where no completion is of use to a trainer."""
    parts = zip(*generated, strict=True)
    check_some_usable([why_unusable(*each) for each in parts])


async def read_reply(read: Callable[[bytes, Breathe], T], blocks: list[bytes]) -> T:
    """Read a reply, whatever it is; a long one off the event loop.

    There, too, it is put together: one of 5 MB takes 16 ms.

    Args:
        read: Takes the body and what to call now and then, and raises one of
            `NO_SUCH_FORM` where it is no such reply.
        blocks: Of the body.

    Raises:
        BadReplyError: It is no such reply.
    """
    try:
        if sum(map(len, blocks)) <= SHORT_REPLY_BYTES:
            return read(b"".join(blocks), no_breath)
        return await off_loop(lambda: read(b"".join(blocks), breathe))
    except BadReplyError:
        raise
    except NO_SUCH_FORM as error:
        said = said_in(b"".join(blocks)[:LONGEST_READ].decode("utf-8", "replace"))
        raise BadReplyError(
            f"a reply without completions: {said or 'empty'}"
        ) from error
