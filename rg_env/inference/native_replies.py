"""Replies of `/generate`, read into tokens and log-probabilities.

    vllm     {"logprobs": [[[{"17": -0.5}], ...], ...], "finish_reasons": [...], ...}
    sglang   [{"meta_info": {"output_token_logprobs": [[-0.5, 17, null], ...],
                             "finish_reason": {...}, ...}, ...}, ...]

A reply has an object or a list for every token, megabytes in all, and reading it holds
the interpreter's lock. So the outer JSON is read without these lists, and each list,
which nearly always is one shape repeated, is read as one flat list of numbers. The
shape is what is left of the text without the characters of numbers; a list of any
other shape is read in full, and so is a whole reply that is no strict JSON (NaN).

Mends B23 of docs/host_defects.md.

Source: atroposlib 0.4.0, VLLMServer and SGLangServer; differs: none in the result.
"""

from __future__ import annotations

import array
import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import orjson

from rg_env.off_loop import no_breath

_NUMBER_CHARS = b"0123456789+-.eE \t\n\r"
_COMMA_FOR_COLON = bytes.maketrans(b":", b",")
_VLLM_UNIT = b'[{"":}]'
_SGLANG_UNIT = b"[,,null]"

NATURAL_ENDS = frozenset({"stop", "length", "tool_calls", "function_call"})
"""Of a whole completion; any other, as "abort" or "content_filter", leaves half."""

Sequence = tuple[list[int], list[float]]

NativeReply = tuple[list[int], list[list[int]], list[list[float]], list[Any]]
"""Prompt tokens; tokens, log-probabilities and finish reason of each completion."""


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


def end_of(reason: Any) -> Any:
    """Return the word for why a completion ended, which SGLang puts in an object."""
    return reason.get("type", "stop") if isinstance(reason, dict) else reason


def is_usable(tokens: list[int], logprobs: list[float], finish_reason: Any) -> bool:
    """Say whether a completion is whole, and each of its log-probabilities a number.

    Args:
        tokens: Shape (T,).
        logprobs: Shape (T,).
        finish_reason: As the server gives it.
    """
    try:
        # A sum is finite only if all of its parts are, and faster than asking each.
        is_finite = math.isfinite(sum(logprobs))
    except TypeError:  # None, as SGLang writes a NaN
        return False
    same_length = len(tokens) == len(logprobs)
    return same_length and is_finite and end_of(finish_reason) in NATURAL_ENDS


class _VllmReply(msgspec.Struct):
    logprobs: list[msgspec.Raw]
    finish_reasons: list[Any]


class _SglangMeta(msgspec.Struct):
    output_token_logprobs: msgspec.Raw = msgspec.Raw(b"[]")
    finish_reason: Any = None


class _SglangResult(msgspec.Struct):
    meta_info: _SglangMeta = msgspec.field(default_factory=_SglangMeta)


_VLLM_DECODER = msgspec.json.Decoder(_VllmReply)
_SGLANG_DECODER = msgspec.json.Decoder(list[_SglangResult] | _SglangResult)


def _is_repeated(raw: bytes, unit: bytes) -> bool:
    """Say whether a list consists of one shape alone, any number of times."""
    shape = raw.translate(None, _NUMBER_CHARS)
    count = (len(shape) - 1) // (len(unit) + 1)
    return shape == b"[%s]" % b",".join([unit] * count)


def _pair(ids: list[Any], logprobs: list[Any]) -> Sequence | None:
    """Return both, None where an id is no whole number."""
    if type(sum(ids)) is not int:  # a sum is a float as soon as one of its parts is
        return None
    return ids, array.array("d", logprobs).tolist()


def _flat(numbers: bytes) -> list[Any] | None:
    try:
        flat: list[Any] = orjson.loads(b"[%s]" % numbers)
    except orjson.JSONDecodeError:
        return None
    return flat


def _read_vllm_flat(raw: bytes) -> Sequence | None:
    if not _is_repeated(raw, _VLLM_UNIT):
        return None
    flat = _flat(raw.translate(_COMMA_FOR_COLON, b'[]{}"'))
    return None if flat is None else _pair(flat[0::2], flat[1::2])


def _read_sglang_flat(raw: bytes) -> Sequence | None:
    if not _is_repeated(raw, _SGLANG_UNIT):
        return None
    flat = _flat(raw.translate(None, b"[]"))
    return None if flat is None else _pair(flat[1::3], flat[0::3])


def _vllm_sequence(positions: Any) -> Sequence:
    firsts = [next(iter(position[0].items())) for position in positions]
    return [int(key) for key, _ in firsts], [value for _, value in firsts]


def _sglang_sequence(positions: Any) -> Sequence:
    return [p[1] for p in positions], [p[0] for p in positions]


def _collected(pairs: list[tuple[Sequence, Any]]) -> Generated:
    return Generated(
        [ids for (ids, _), _ in pairs],
        [logprobs for (_, logprobs), _ in pairs],
        [reason for _, reason in pairs],
    )


def read_vllm(body: bytes, breathe: Callable[[], None] = no_breath) -> Generated:
    """Read a reply of vLLM.

    Args:
        body: The reply's JSON, in UTF-8.
        breathe: Called between two completions.

    Raises:
        Exception: It is none; as many kinds as there are ways to be wrong.
    """
    try:
        reply = _VLLM_DECODER.decode(body)
    except msgspec.MsgspecError:
        whole = json.loads(body)
        both = zip(whole["logprobs"], whole["finish_reasons"], strict=False)
        return _collected([(_vllm_sequence(rows), reason) for rows, reason in both])
    pairs = []
    for raw, reason in zip(reply.logprobs, reply.finish_reasons, strict=False):
        text = bytes(raw)
        pair = _read_vllm_flat(text) or _vllm_sequence(json.loads(text))
        pairs.append((pair, reason))
        breathe()
    return _collected(pairs)


def read_sglang(body: bytes, breathe: Callable[[], None] = no_breath) -> Generated:
    """Read a reply of SGLang; see `read_vllm`."""
    try:
        reply = _SGLANG_DECODER.decode(body)
    except msgspec.MsgspecError:
        return _read_sglang_whole(json.loads(body))
    pairs = []
    for result in reply if isinstance(reply, list) else [reply]:
        text = bytes(result.meta_info.output_token_logprobs)
        pair = _read_sglang_flat(text) or _sglang_sequence(json.loads(text))
        pairs.append((pair, result.meta_info.finish_reason))
        breathe()
    return _collected(pairs)


def _read_sglang_whole(reply: Any) -> Generated:
    metas = [
        result.get("meta_info", {})
        for result in (reply if isinstance(reply, list) else [reply])
    ]
    return _collected(
        [
            (
                _sglang_sequence(meta.get("output_token_logprobs", [])),
                meta.get("finish_reason", None),
            )
            for meta in metas
        ]
    )
