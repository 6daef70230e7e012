"""Replies read: into tokens and log-probabilities, by one reader for each form.

    /v1/completions     {"choices": [{"token_ids": [17, ...], "logprobs":
                         {"token_logprobs": [-0.5, ...], "tokens": ["token_id:17",
                         ...]}, "finish_reason": "stop"}, ...]}
    /generate, Atropos  {"logprobs": [[[{"17": -0.5}], ...], ...],
                         "finish_reasons": [...], ...}
    /generate, SGLang   [{"meta_info": {"output_token_logprobs": [[-0.5, 17, null],
                         ...], "finish_reason": {...}, ...}, ...}, ...]

Of the first, `tokens` is read where `token_ids` is not there, as of vLLM before 0.10.2.

Those of `/generate` have an object or a list for every token, megabytes in all, and
reading it holds the interpreter's lock. So the outer JSON is read without these lists,
and each list, which nearly always is one shape repeated, is read as one flat list of
numbers. The shape is what is left of the text without the characters of numbers; a list
of any other shape is read in full. Others are read choice by choice.

Mends B23 of docs/host_defects.md.

Source: atroposlib 0.4.0, VLLMServer and SGLangServer; differs: none in the result of
`/generate`.
"""

from __future__ import annotations

import array
import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
import orjson
from openai.types.chat import ChatCompletion

from rg_env.inference.request_failures import LONGEST_READ, said_in
from rg_env.off_loop import breathe, no_breath, off_loop

T = TypeVar("T")

SHORT_REPLY_BYTES = 2**17
"""A reply up to here is read in half a millisecond, in place."""

TOKEN_IDS, LOGPROBS = "token ids", "log-probabilities"

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


async def read_reply(read: Callable[[bytes, Breathe], T], blocks: list[bytes]) -> T:
    """Read the blocks of a reply, whatever it is.

    A long one is read off the event loop, and put together there, too: one of 5 MB
    takes 16 ms.

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


_NUMBER_CHARS = b"0123456789+-.eE \t\n\r"
_COMMA_FOR_COLON = bytes.maketrans(b":", b",")

TOKEN_ID = "token_id:"  # noqa: S105 - what a token is written as, no secret
LONGEST_ID = 10
"""Digits of a token id."""

Scored = tuple[list[int], list[float]]
"""Token ids of a completion and the log-probability of each."""

Part = tuple[list[int], list[float], Any]
"""Those of a completion, and its finish reason."""


def _collected(parts: Iterable[Part], breathe: Breathe) -> Generated:
    generated = Generated([], [], [])
    for tokens, logprobs, finish_reason in parts:
        generated.tokens.append(tokens)
        generated.logprobs.append(logprobs)
        generated.finish_reasons.append(finish_reason)
        breathe()
    return generated


# -- /v1/completions -------------------------------------------------------------------


class _Logprobs(msgspec.Struct):
    token_logprobs: list[float | None] | None = None
    tokens: msgspec.Raw = msgspec.Raw(b"null")


class _Choice(msgspec.Struct):
    token_ids: list[int] | None = None
    logprobs: _Logprobs | None = None
    finish_reason: str | None = None


class _Choices(msgspec.Struct):
    choices: list[msgspec.Raw]


_CHOICE = msgspec.json.Decoder(_Choice)
_CHOICES = msgspec.json.Decoder(_Choices)
_TOKENS = msgspec.json.Decoder(list[str | None] | None)


def _id_in(token: str | None) -> int:
    digits = (token or "").removeprefix(TOKEN_ID)
    if digits == token or not digits.isdecimal() or len(digits) > LONGEST_ID:
        raise MissingInReplyError(TOKEN_IDS)
    return int(digits)


def _part(raw: msgspec.Raw) -> Part:
    choice = _CHOICE.decode(raw)
    ids, told = choice.token_ids, choice.logprobs or _Logprobs()
    if ids is None:
        tokens = _TOKENS.decode(told.tokens)
        ids = list(map(_id_in, [None] if tokens is None else tokens))
    if told.token_logprobs is None:
        raise MissingInReplyError(LOGPROBS)
    # A null makes the completion unusable, which is seen where all are read.
    return ids, cast(list[float], told.token_logprobs), choice.finish_reason


def read_completions(body: bytes, breathe: Breathe = no_breath) -> Generated:
    """Read a reply of `/v1/completions`; raises one of `NO_SUCH_FORM`."""
    return _collected(map(_part, _CHOICES.decode(body).choices), breathe)


# -- /generate, of Atropos and of SGLang -----------------------------------------------


class _AtroposReply(msgspec.Struct):
    logprobs: list[msgspec.Raw]
    finish_reasons: list[Any]


class _SglangMeta(msgspec.Struct):
    output_token_logprobs: msgspec.Raw
    finish_reason: Any = None


class _SglangResult(msgspec.Struct):
    meta_info: _SglangMeta


_ATROPOS = msgspec.json.Decoder(_AtroposReply)
_SGLANG = msgspec.json.Decoder(list[_SglangResult] | _SglangResult)


def _flat(raw: bytes, unit: bytes, drop: bytes) -> list[Any] | None:
    """Return the numbers of a list of one repeated shape; None of any other."""
    shape = raw.translate(None, _NUMBER_CHARS)
    count = (len(shape) - 1) // (len(unit) + 1)
    if shape != b"[%s]" % b",".join([unit] * count):
        return None
    try:
        flat: list[Any] = orjson.loads(b"[%s]" % raw.translate(_COMMA_FOR_COLON, drop))
    except orjson.JSONDecodeError:
        return None
    return flat


def _pair(ids: list[Any], logprobs: list[Any]) -> Scored | None:
    """Return both, None where an id is no whole number."""
    if type(sum(ids)) is not int:  # a sum is a float as soon as one of its parts is
        return None
    return ids, array.array("d", logprobs).tolist()


def _scored_by_atropos(raw: bytes) -> Scored:
    flat = _flat(raw, b'[{"":}]', b'[]{}"')
    pair = None if flat is None else _pair(flat[0::2], flat[1::2])
    if pair is not None:
        return pair
    firsts = [next(iter(position[0].items())) for position in json.loads(raw)]
    return [int(key) for key, _ in firsts], [value for _, value in firsts]


def _scored_by_sglang(raw: bytes) -> Scored:
    flat = _flat(raw, b"[,,null]", b"[]")
    pair = None if flat is None else _pair(flat[1::3], flat[0::3])
    if pair is not None:
        return pair
    positions = json.loads(raw)
    return [p[1] for p in positions], [p[0] for p in positions]


def read_atropos(body: bytes, breathe: Breathe = no_breath) -> Generated:
    """Read a reply of Atropos' vLLM server; raises one of `NO_SUCH_FORM`."""
    reply = _ATROPOS.decode(body)
    both = zip(reply.logprobs, reply.finish_reasons, strict=False)
    parts = ((*_scored_by_atropos(bytes(raw)), end) for raw, end in both)
    return _collected(parts, breathe)


def read_sglang(body: bytes, breathe: Breathe = no_breath) -> Generated:
    """Read a reply of SGLang; raises one of `NO_SUCH_FORM`."""
    reply = _SGLANG.decode(body)
    metas = [each.meta_info for each in (reply if isinstance(reply, list) else [reply])]
    parts = (
        (*_scored_by_sglang(bytes(meta.output_token_logprobs)), meta.finish_reason)
        for meta in metas
    )
    return _collected(parts, breathe)


# -- a chat ----------------------------------------------------------------------------


def read_chat(body: bytes, breathe: Breathe) -> ChatCompletion:
    """Read a chat into what openai's client makes of it; raises `NO_SUCH_FORM`."""
    value = json.loads(body)  # orjson refuses half a pair of UTF-16
    if not all(isinstance(choice["message"], dict) for choice in value["choices"]):
        raise TypeError("a choice without a message")
    return ChatCompletion.construct(**value)
