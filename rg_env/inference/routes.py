"""The routes at which servers return token ids and log-probabilities.

    /v1/completions     vLLM from 0.10.2 (TRL's server is one, from TRL 1.12) and SGLang
                        from July 2026, which take `return_token_ids`; older vLLM by
                        `return_tokens_as_token_ids`
                        {"choices": [{"token_ids": [17, ...], "logprobs":
                         {"token_logprobs": [-0.5, ...], "tokens": ["token_id:17",
                         ...]}, "finish_reason": "stop"}, ...]}
    /generate, Atropos  the vLLM server of Atropos' example trainer
                        {"logprobs": [[[{"17": -0.5}], ...], ...],
                         "finish_reasons": [...], ...}
    /generate, SGLang   [{"meta_info": {"output_token_logprobs": [[-0.5, 17, null],
                         ...], "finish_reason": {...}, ...}, ...}, ...]

Each takes the prompt as ids, so that what a trainer learns from is what the model was
given. A stock vLLM samples with what the model's `generation_config.json` says (top_k
and others) where a request does not; so what the settings leave out is sent as neutral.

Replies are read choice by choice: those of `/generate` have an object or a list for
every token, megabytes in all, and reading one holds the interpreter's lock.

Mends B23 of docs/host_defects.md.

Source: atroposlib 0.4.0, VLLMServer and SGLangServer; differs: none in the result of
`/generate`, in a reply whose ids and log-probabilities are numbers.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from openai.types.chat import ChatCompletion

from rg_env.inference.request_failures import (
    LACKING_REPLY,
    LONGEST_READ,
    RequestFailedError,
    bad_reply,
    body_summary,
)
from rg_env.off_loop import keep_gil, off_loop, release_gil

T = TypeVar("T")

NEUTRAL = {
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Sampling that changes nothing."""

NUM_LIKELIEST = 5

Body = dict[str, Any]
SamplingFields = Mapping[str, Any]

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


def lacking(what: str) -> RequestFailedError:
    """Return the error for a correct reply without something that a trainer needs."""
    return bad_reply(f"the reply has no {what}", LACKING_REPLY)


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
        RequestFailedError: It is no such reply.
    """
    try:
        if sum(map(len, blocks)) <= SHORT_REPLY_BYTES:
            return read(b"".join(blocks), keep_gil)
        return await off_loop(lambda: read(b"".join(blocks), release_gil))
    except NO_SUCH_FORM as error:
        text = b"".join(blocks)[:LONGEST_READ].decode("utf-8", "replace")
        said = body_summary(text, *secrets)
        raise bad_reply(f"a reply without completions: {said or 'empty'}") from error


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


class ReplyDetails(NamedTuple):
    """What a reply says beside tokens and log-probabilities.

    Attributes:
        texts: Of the completions, shape (G,), None of one without.
        prompt: The tokens of the prompt as the server took it; None where it does not
            say.
    """

    texts: list[Any]
    prompt: list[int] | None = None


@dataclasses.dataclass(frozen=True)
class TokenRoute:
    """One way of querying for token ids.

    Attributes:
        path: Below the server's root.
        body: Of a request: prompt, sampling, name of the model and what the setting
            `extra_body` adds.
        read: The body of a reply into completions.
        details: The JSON of a reply into what else it says.
        likeliest: Fields of a body that want the likeliest tokens too.
        of_likeliest: The JSON of a reply to such a body into the log-probabilities of
            the likeliest first tokens, and perhaps of the one that was sampled.
    """

    path: str
    body: Callable[[list[int], SamplingFields, str, Mapping[str, Any]], Body]
    read: Callable[..., Generated]
    details: Callable[[Any], ReplyDetails]
    likeliest: Body
    of_likeliest: Callable[[Any], Iterable[Any]]


def _with_max_tokens(sampling: SamplingFields) -> Body:
    """Return what is sampled with, the limit under vLLM's name."""
    named = dict(sampling)
    for other in ("max_new_tokens", "max_completion_tokens"):
        if other in named:
            named["max_tokens"] = named.pop(other)
    return named


# -- OpenAI's completions, as vLLM and SGLang extend them ------------------------------


TOKEN_ID = "token_id:"  # noqa: S105 - what a token is written as, no secret
LONGEST_ID = 10
"""Digits of a token id."""


class _Logprobs(msgspec.Struct):
    token_logprobs: list[float | None] | None = None
    tokens: msgspec.Raw = msgspec.Raw(b"null")


class _Choice(msgspec.Struct):
    token_ids: list[int] | None = None
    logprobs: _Logprobs | None = None
    finish_reason: str | None = None


class _Choices(msgspec.Struct):
    choices: list[msgspec.Raw]
    model: Any = None


_CHOICE = msgspec.json.Decoder(_Choice)
_CHOICES = msgspec.json.Decoder(_Choices)
_TOKENS = msgspec.json.Decoder(list[str | None] | None)


def _id_in(token: str | None) -> int:
    digits = (token or "").removeprefix(TOKEN_ID)
    if digits == token or not digits.isdecimal() or len(digits) > LONGEST_ID:
        raise lacking(TOKEN_IDS)
    return int(digits)


def _part(raw: msgspec.Raw) -> TokenChoice:
    choice = _CHOICE.decode(raw)
    ids, told = choice.token_ids, choice.logprobs or _Logprobs()
    if ids is None:
        tokens = _TOKENS.decode(told.tokens)
        ids = list(map(_id_in, [None] if tokens is None else tokens))
    if told.token_logprobs is None:
        raise lacking(LOGPROBS)
    # A null makes the completion unusable, which is seen where all are read.
    return ids, cast(list[float], told.token_logprobs), choice.finish_reason


def is_another_model(asked: str, told: Any) -> bool:
    """Say whether a server names a model in its reply that is not the one asked for.

    Some name a folder or nothing, and some add an owner or a version.
    """
    if not isinstance(told, str) or not told or told.startswith(("/", ".")):
        return False
    names = [name.rstrip("/").rpartition("/")[2].lower() for name in (asked, told)]
    return not names[0].startswith(names[1]) and not names[1].startswith(names[0])


def read_completions(
    body: bytes, release_gil: ReleaseGil = keep_gil, asked: str = ""
) -> Generated:
    """Read a reply of `/v1/completions`; raises one of `NO_SUCH_FORM`.

    Raises:
        RequestFailedError: It is of another model than the one `asked` for.
    """
    reply = _CHOICES.decode(body)
    if is_another_model(asked, reply.model):
        raise bad_reply(f"the reply is of the model {reply.model!r}, not {asked!r}")
    return _collected(map(_part, reply.choices), release_gil)


def _completions_body(
    prompt: list[int], sampling: SamplingFields, model: str, extra: Mapping[str, Any]
) -> Body:
    return {
        "model": model,
        "prompt": prompt,
        **NEUTRAL,
        **_with_max_tokens(sampling),
        **extra,
        # No token but the sampled one, which is always returned.
        "logprobs": 0,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
    }


def _completions_details(reply: Any) -> ReplyDetails:
    choices = reply["choices"]
    prompt = choices[0].get("prompt_token_ids") or reply.get("prompt_token_ids")
    return ReplyDetails([choice.get("text") for choice in choices], prompt)


COMPLETIONS = TokenRoute(
    "/v1/completions",
    _completions_body,
    read_completions,
    _completions_details,
    {"logprobs": NUM_LIKELIEST},
    lambda reply: reply["choices"][0]["logprobs"]["top_logprobs"][0].values(),
)


# -- the server of Atropos' example trainer --------------------------------------------


class _AtroposReply(msgspec.Struct):
    logprobs: list[msgspec.Raw]
    finish_reasons: list[Any]


_ATROPOS = msgspec.json.Decoder(_AtroposReply)
_ATROPOS_TOKENS = msgspec.json.Decoder(list[list[dict[int, float | None]]])


def _atropos_part(raw: msgspec.Raw, end: Any) -> TokenChoice:
    firsts = [next(iter(each[0].items())) for each in _ATROPOS_TOKENS.decode(raw)]
    logprobs = [logprob for _, logprob in firsts]
    return [token for token, _ in firsts], cast(list[float], logprobs), end


def read_atropos(
    body: bytes, release_gil: ReleaseGil = keep_gil, asked: str = ""
) -> Generated:
    """Read a reply of Atropos' vLLM server, which names no model; raises as above."""
    reply = _ATROPOS.decode(body)
    parts = map(_atropos_part, reply.logprobs, reply.finish_reasons)
    return _collected(parts, release_gil)


def _atropos_body(
    prompt: list[int], sampling: SamplingFields, model: str, extra: Mapping[str, Any]
) -> Body:
    own = {"prompt": {"prompt_token_ids": prompt}, "logprobs": 0}
    return {**own, **_with_max_tokens(sampling), **extra}


ATROPOS = TokenRoute(
    "/generate",
    _atropos_body,
    read_atropos,
    lambda reply: ReplyDetails(reply.get("text") or [], reply.get("prompt_token_ids")),
    {"logprobs": NUM_LIKELIEST},
    lambda reply: reply["logprobs"][0][0][0].values(),
)


# -- SGLang ----------------------------------------------------------------------------


class _SglangMeta(msgspec.Struct):
    output_token_logprobs: msgspec.Raw
    finish_reason: Any = None


class _SglangResult(msgspec.Struct):
    meta_info: _SglangMeta


class _SglangToken(msgspec.Struct, array_like=True):
    logprob: float | None
    id: int


_SGLANG = msgspec.json.Decoder(list[_SglangResult] | _SglangResult)
_SGLANG_TOKENS = msgspec.json.Decoder(list[_SglangToken])


def _sglang_part(meta: _SglangMeta) -> TokenChoice:
    read = _SGLANG_TOKENS.decode(meta.output_token_logprobs)
    logprobs = [token.logprob for token in read]
    return [token.id for token in read], cast(list[float], logprobs), meta.finish_reason


def read_sglang(
    body: bytes, release_gil: ReleaseGil = keep_gil, asked: str = ""
) -> Generated:
    """Read a reply of SGLang, which names no model here; raises as above."""
    reply = _SGLANG.decode(body)
    results = reply if isinstance(reply, list) else [reply]
    return _collected((_sglang_part(each.meta_info) for each in results), release_gil)


def _sglang_body(
    prompt: list[int], sampling: SamplingFields, model: str, extra: Mapping[str, Any]
) -> Body:
    named = dict(sampling)
    if "max_tokens" in named:
        named["max_new_tokens"] = named.pop("max_tokens")
    return {
        "input_ids": prompt,
        "sampling_params": {**named, **extra},
        "return_logprob": True,
        "return_text_in_logprobs": False,
    }


def _results(reply: Any) -> list[Any]:
    return reply if isinstance(reply, list) else [reply]


SGLANG = TokenRoute(
    "/generate",
    _sglang_body,
    read_sglang,
    lambda reply: ReplyDetails([result.get("text") for result in _results(reply)]),
    {"top_logprobs_num": NUM_LIKELIEST},
    lambda reply: [
        entry[0] for entry in _results(reply)[0]["meta_info"]["output_top_logprobs"][0]
    ],
)


# -- a chat ----------------------------------------------------------------------------


def read_chat(body: bytes, release_gil: ReleaseGil) -> ChatCompletion:
    """Read a chat into what openai's client makes of it; raises `NO_SUCH_FORM`."""
    value = json.loads(body)  # orjson refuses half a pair of UTF-16
    if not all(isinstance(choice["message"], dict) for choice in value["choices"]):
        raise TypeError("a choice without a message")
    return ChatCompletion.construct(**value)
