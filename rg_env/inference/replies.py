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
reading it holds the interpreter's lock. So all are read choice by choice.

Mends B23 of docs/host_defects.md.

Source: atroposlib 0.4.0, VLLMServer and SGLangServer; differs: none in the result of
`/generate`, in a reply whose ids and log-probabilities are numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from openai.types.chat import ChatCompletion

from rg_env.inference.request_failures import (
    LONGEST_READ,
    Failure,
    RequestFailedError,
    body_summary,
)
from rg_env.off_loop import keep_gil, off_loop, release_gil

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

ReleaseGil = Callable[[], None]


class BadReplyError(RequestFailedError):
    """A reply contains no completions; the message says what it contains instead."""

    def __init__(self, said: str, kind: str | None = None) -> None:
        super().__init__(Failure(kind or type(self).__name__, said))


class MissingInReplyError(BadReplyError):
    """A reply is correct but lacks what a trainer needs."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the reply has no {what}")


class UnusableReplyError(BadReplyError):
    """No completion of a reply is usable, which may be temporary."""


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


async def read_reply(
    read: Callable[[bytes, ReleaseGil], T], blocks: list[bytes], *secrets: str
) -> T:
    """Read the blocks of a reply, whatever it is.

    A long one is read off the event loop, and put together there, too: one of 5 MB
    takes 16 ms.

    Args:
        read: Takes the body and what to call now and then, and raises one of
            `NO_SUCH_FORM` where it is no such reply.
        blocks: Of the body.
        secrets: What no sentence may repeat of it.

    Raises:
        BadReplyError: It is no such reply.
    """
    try:
        if sum(map(len, blocks)) <= SHORT_REPLY_BYTES:
            return read(b"".join(blocks), keep_gil)
        return await off_loop(lambda: read(b"".join(blocks), release_gil))
    except BadReplyError:
        raise
    except NO_SUCH_FORM as error:
        text = b"".join(blocks)[:LONGEST_READ].decode("utf-8", "replace")
        said = body_summary(text, *secrets)
        raise BadReplyError(
            f"a reply without completions: {said or 'empty'}"
        ) from error


TOKEN_ID = "token_id:"  # noqa: S105 - what a token is written as, no secret
LONGEST_ID = 10
"""Digits of a token id."""

TokenChoice = tuple[list[int], list[float], Any]
"""Token ids of a completion, the log-probability of each, and its finish reason."""


def _collected(parts: Iterable[TokenChoice], release_gil: ReleaseGil) -> Generated:
    generated = Generated([], [], [])
    for tokens, logprobs, finish_reason in parts:
        generated.tokens.append(tokens)
        generated.logprobs.append(logprobs)
        generated.finish_reasons.append(finish_reason)
        release_gil()
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


def _part(raw: msgspec.Raw) -> TokenChoice:
    choice = _CHOICE.decode(raw)
    ids, told = choice.token_ids, choice.logprobs or _Logprobs()
    if ids is None:
        tokens = _TOKENS.decode(told.tokens)
        ids = list(map(_id_in, [None] if tokens is None else tokens))
    if told.token_logprobs is None:
        raise MissingInReplyError(LOGPROBS)
    # A null makes the completion unusable, which is seen where all are read.
    return ids, cast(list[float], told.token_logprobs), choice.finish_reason


def read_completions(body: bytes, release_gil: ReleaseGil = keep_gil) -> Generated:
    """Read a reply of `/v1/completions`; raises one of `NO_SUCH_FORM`."""
    return _collected(map(_part, _CHOICES.decode(body).choices), release_gil)


# -- /generate, of Atropos and of SGLang -----------------------------------------------


class _AtroposReply(msgspec.Struct):
    logprobs: list[msgspec.Raw]
    finish_reasons: list[Any]


class _SglangMeta(msgspec.Struct):
    output_token_logprobs: msgspec.Raw
    finish_reason: Any = None


class _SglangResult(msgspec.Struct):
    meta_info: _SglangMeta


class _SglangToken(msgspec.Struct, array_like=True):
    logprob: float | None
    id: int


_ATROPOS = msgspec.json.Decoder(_AtroposReply)
_ATROPOS_TOKENS = msgspec.json.Decoder(list[list[dict[int, float | None]]])
_SGLANG = msgspec.json.Decoder(list[_SglangResult] | _SglangResult)
_SGLANG_TOKENS = msgspec.json.Decoder(list[_SglangToken])


def _atropos_part(raw: msgspec.Raw, end: Any) -> TokenChoice:
    firsts = [next(iter(each[0].items())) for each in _ATROPOS_TOKENS.decode(raw)]
    logprobs = [logprob for _, logprob in firsts]
    return [token for token, _ in firsts], cast(list[float], logprobs), end


def _sglang_part(meta: _SglangMeta) -> TokenChoice:
    read = _SGLANG_TOKENS.decode(meta.output_token_logprobs)
    logprobs = [token.logprob for token in read]
    return [token.id for token in read], cast(list[float], logprobs), meta.finish_reason


def read_atropos(body: bytes, release_gil: ReleaseGil = keep_gil) -> Generated:
    """Read a reply of Atropos' vLLM server; raises one of `NO_SUCH_FORM`."""
    reply = _ATROPOS.decode(body)
    parts = map(_atropos_part, reply.logprobs, reply.finish_reasons)
    return _collected(parts, release_gil)


def read_sglang(body: bytes, release_gil: ReleaseGil = keep_gil) -> Generated:
    """Read a reply of SGLang; raises one of `NO_SUCH_FORM`."""
    reply = _SGLANG.decode(body)
    results = reply if isinstance(reply, list) else [reply]
    return _collected((_sglang_part(each.meta_info) for each in results), release_gil)


# -- a chat ----------------------------------------------------------------------------


def read_chat(body: bytes, release_gil: ReleaseGil) -> ChatCompletion:
    """Read a chat into what openai's client makes of it; raises `NO_SUCH_FORM`."""
    value = json.loads(body)  # orjson refuses half a pair of UTF-16
    if not all(isinstance(choice["message"], dict) for choice in value["choices"]):
        raise TypeError("a choice without a message")
    return ChatCompletion.construct(**value)
