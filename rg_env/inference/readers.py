"""Replies read into tokens and log-probabilities: one reader for each form.

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
from typing import Any

import msgspec
import orjson

from rg_env.inference.replies import (
    LOGPROBS,
    TOKEN_IDS,
    Breathe,
    Generated,
    MissingInReplyError,
)
from rg_env.off_loop import no_breath

_NUMBER_CHARS = b"0123456789+-.eE \t\n\r"
_COMMA_FOR_COLON = bytes.maketrans(b":", b",")

TOKEN_ID = "token_id:"  # noqa: S105 - what a token is written as, no secret
LONGEST_ID = 10
"""Digits of a token id."""

Scored = tuple[list[int], list[float]]
"""Token ids of a completion and the log-probability of each."""


# -- /v1/completions -------------------------------------------------------------------


class _TokenLogprobs(msgspec.Struct):
    token_logprobs: list[float | None] | None = None


class _Completion(msgspec.Struct):
    token_ids: list[int] | None = None
    logprobs: _TokenLogprobs | None = None
    finish_reason: str | None = None


class _TokensAsText(msgspec.Struct):
    tokens: list[str | None] | None = None


class _Written(msgspec.Struct):
    logprobs: _TokensAsText | None = None


class _Choices(msgspec.Struct):
    choices: list[msgspec.Raw]


_CHOICES = msgspec.json.Decoder(_Choices)


def _choices(body: bytes, kind: type[Any], breathe: Breathe) -> list[Any]:
    """Return the choices of a reply, each as a struct."""
    decode = msgspec.json.Decoder(kind).decode
    choices = []
    for raw in _CHOICES.decode(body).choices:
        choices.append(decode(raw))
        breathe()
    return choices


def _id_in(token: str | None) -> int:
    """Return the id that a token is written as."""
    digits = (token or "").removeprefix(TOKEN_ID)
    is_id = digits != token and digits.isdecimal() and len(digits) <= LONGEST_ID
    if not is_id:
        raise MissingInReplyError(TOKEN_IDS)
    return int(digits)


def _written_ids(body: bytes) -> list[list[int]]:
    """Return the ids of a reply that writes them as its tokens."""
    ids = []
    for choice in _choices(body, _Written, no_breath):
        if choice.logprobs is None or choice.logprobs.tokens is None:
            raise MissingInReplyError(TOKEN_IDS)
        ids.append(list(map(_id_in, choice.logprobs.tokens)))
    return ids


def _logprobs_of(choice: _Completion) -> list[Any]:
    logprobs = choice.logprobs
    if logprobs is None or logprobs.token_logprobs is None:
        raise MissingInReplyError(LOGPROBS)
    # A null makes the completion unusable, which is seen where all of them are read.
    return logprobs.token_logprobs


def read_completions(body: bytes, breathe: Breathe = no_breath) -> Generated:
    """Read a reply of `/v1/completions`.

    Raises:
        MissingInReplyError: It holds no token ids, or no log-probabilities.
        Exception: It is none; one of `NO_SUCH_FORM`.
    """
    choices = _choices(body, _Completion, breathe)
    ids = [choice.token_ids for choice in choices]
    if None in ids:
        ids = _written_ids(body)
    ends = [choice.finish_reason for choice in choices]
    return Generated(ids, list(map(_logprobs_of, choices)), ends)


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


def _collected(
    parts: Iterable[tuple[msgspec.Raw, Any]],
    scored: Callable[[bytes], Scored],
    breathe: Breathe,
) -> Generated:
    generated = Generated([], [], [])
    for raw, end in parts:
        tokens, logprobs = scored(bytes(raw))
        generated.tokens.append(tokens)
        generated.logprobs.append(logprobs)
        generated.finish_reasons.append(end)
        breathe()
    return generated


def read_atropos(body: bytes, breathe: Breathe = no_breath) -> Generated:
    """Read a reply of Atropos' vLLM server; raises one of `NO_SUCH_FORM`."""
    reply = _ATROPOS.decode(body)
    parts = zip(reply.logprobs, reply.finish_reasons, strict=False)
    return _collected(parts, _scored_by_atropos, breathe)


def read_sglang(body: bytes, breathe: Breathe = no_breath) -> Generated:
    """Read a reply of SGLang; raises one of `NO_SUCH_FORM`."""
    reply = _SGLANG.decode(body)
    metas = [each.meta_info for each in (reply if isinstance(reply, list) else [reply])]
    parts = [(meta.output_token_logprobs, meta.finish_reason) for meta in metas]
    return _collected(parts, _scored_by_sglang, breathe)
