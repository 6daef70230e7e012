"""Replies of the routes beside `/generate` that return token ids, read as those are.

    /v1/completions         {"choices": [{"token_ids": [17, ...], "logprobs":
                             {"token_logprobs": [-0.5, ...], "tokens": ["token_id:17",
                             ...]}, "finish_reason": "stop"}, ...]}
    /inference/v1/generate  {"choices": [{"token_ids": [17, ...], "logprobs":
                             {"content": [{"logprob": -0.5}, ...]}, ...}, ...]}
    /generate/ of TRL       {"completion_ids": [[17, ...], ...],
                             "logprobs": [[-0.5, ...], ...]}

The first is vLLM's and SGLang's; `tokens` is read where `token_ids` is not there, as of
vLLM before 0.10.2. Choices are read one by one, so that a long reply holds the
interpreter's lock for a short while only.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from rg_env.inference.native_replies import Generated
from rg_env.off_loop import no_breath

TOKEN_ID = "token_id:"  # noqa: S105 - what a token is written as, no secret
LONGEST_ID = 10
"""Digits of a token id."""

TOKEN_IDS, LOGPROBS = "token ids", "log-probabilities"


class MissingInReplyError(ValueError):
    """A reply is well and lacks what a trainer needs.

    Attributes:
        what: `TOKEN_IDS` or `LOGPROBS`.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"the reply has no {what}")
        self.what = what


class _TokenLogprobs(msgspec.Struct):
    token_logprobs: list[float | None] | None = None


class _TokensAsText(msgspec.Struct):
    tokens: list[str | None] | None = None


class _Written(msgspec.Struct):
    logprobs: _TokensAsText | None = None


class _Scored(msgspec.Struct):
    logprob: float | None


class _Content(msgspec.Struct):
    content: list[_Scored] | None = None


class _Completion(msgspec.Struct):
    token_ids: list[int] | None = None
    logprobs: _TokenLogprobs | None = None
    finish_reason: str | None = None


class _Tokens(msgspec.Struct):
    token_ids: list[int] | None = None
    logprobs: _Content | None = None
    finish_reason: str | None = None


class _Choices(msgspec.Struct):
    choices: list[msgspec.Raw]


class _TrlReply(msgspec.Struct):
    completion_ids: list[list[int]]
    logprobs: list[list[float | list[float | None] | None]] | None = None


_CHOICES = msgspec.json.Decoder(_Choices)


def _choices(body: bytes, kind: type[Any], breathe: Callable[[], None]) -> list[Any]:
    """Return the choices of a reply, each as a struct."""
    try:
        raws = _CHOICES.decode(body).choices
        decode = msgspec.json.Decoder(kind).decode
        choices = []
        for raw in raws:
            choices.append(decode(raw))
            breathe()
    except msgspec.ValidationError:
        raise
    except msgspec.MsgspecError:  # NaN, which is no JSON, and which some write
        return [msgspec.convert(c, kind) for c in json.loads(body)["choices"]]
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


def read_completions(body: bytes, breathe: Callable[[], None] = no_breath) -> Generated:
    """Read a reply of `/v1/completions`.

    Args:
        body: The reply's JSON, in UTF-8.
        breathe: Called between two completions.

    Raises:
        MissingInReplyError: It holds no token ids, or no log-probabilities.
        Exception: It is none; as many kinds as there are ways to be wrong.
    """
    choices = _choices(body, _Completion, breathe)
    ids = [choice.token_ids for choice in choices]
    if None in ids:
        ids = _written_ids(body)
    ends = [choice.finish_reason for choice in choices]
    return Generated(ids, list(map(_logprobs_of, choices)), ends)


def read_tokens(body: bytes, breathe: Callable[[], None] = no_breath) -> Generated:
    """Read a reply of `/inference/v1/generate`; see `read_completions`."""
    choices = _choices(body, _Tokens, breathe)
    logprobs: list[Any] = []
    for choice in choices:
        if choice.token_ids is None:
            raise MissingInReplyError(TOKEN_IDS)
        if choice.logprobs is None or choice.logprobs.content is None:
            raise MissingInReplyError(LOGPROBS)
        logprobs.append([scored.logprob for scored in choice.logprobs.content])
        breathe()
    return Generated(
        [choice.token_ids for choice in choices],
        logprobs,
        [choice.finish_reason for choice in choices],
    )


def _sampled(entry: Any) -> Any:
    """Return a token's own log-probability, which newer TRL puts in a list."""
    if isinstance(entry, list):
        return entry[0] if len(entry) == 1 else None
    return entry


def read_trl(body: bytes, breathe: Callable[[], None] = no_breath) -> Generated:
    """Read a reply of TRL's `/generate/`; see `read_completions`.

    It does not say why a completion ended; None stands for that.
    """
    try:
        reply = msgspec.json.decode(body, type=_TrlReply)
    except msgspec.ValidationError:
        raise
    except msgspec.MsgspecError:
        reply = msgspec.convert(json.loads(body), _TrlReply)
    if reply.logprobs is None:
        raise MissingInReplyError(LOGPROBS)
    breathe()
    logprobs: list[Any] = [list(map(_sampled, row)) for row in reply.logprobs]
    return Generated(reply.completion_ids, logprobs, [None] * len(logprobs))
