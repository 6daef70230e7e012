"""The routes at which servers return token ids and log-probabilities, and chats.

    /v1/completions     vLLM from 0.10.2 (TRL's server is one, from TRL 1.12) and SGLang
                        from July 2026, which take `return_token_ids`; older vLLM by
                        `return_tokens_as_token_ids`
    /generate, Atropos  the vLLM server of Atropos' example trainer
    /generate, SGLang   SGLang

Each takes the prompt as ids, so that what a trainer learns from is what the model was
given. A stock vLLM samples with what the model's `generation_config.json` says (top_k
and others) where a request does not; so what the settings leave out is sent as neutral.
Replies are read choice by choice: those of `/generate` have an object or a list for
every token, megabytes in all, and reading one holds the interpreter's lock.

Source: atroposlib 0.4.0, VLLMServer and SGLangServer; differs: none in the result of
`/generate`, in a reply whose ids and log-probabilities are numbers.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from rg_env.inference.request_failures import bad_reply

NEUTRAL = {
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Sampling that changes nothing."""

CHAT = "/v1/chat/completions"

NO_SUCH_FORM = AttributeError, LookupError, RecursionError, TypeError, ValueError
"""What reading a reply raises that is of another form; msgspec's are of the last."""

Body = dict[str, Any]
Fields = Mapping[str, Any]


class TokenChoice(NamedTuple):
    """A completion as a server returns it; nothing is checked but the types."""

    tokens: list[int]
    logprobs: list[float | None]  # None, as SGLang writes a NaN, makes it unusable
    finish_reason: Any  # the server's word, or SGLang's object
    text: Any = None
    prompt: Any = None  # the prompt's tokens, where the server says them


@dataclasses.dataclass(frozen=True)
class TokenRoute:
    """One way of querying for token ids.

    `body` makes that of a request, of prompt, sampling, name of the model and what the
    setting `extra_body` adds. `read` yields the completions of a reply's body to a
    request for a model; it raises one of `NO_SUCH_FORM`.
    """

    path: str
    body: Callable[[list[int], Fields, str, Fields], Body]
    read: Callable[[bytes, str], Iterator[TokenChoice]]


def _with_limit(sampling: Fields, name: str) -> Body:
    limits = ("max_tokens", "max_new_tokens", "max_completion_tokens")
    return {name if key in limits else key: value for key, value in sampling.items()}


# -- OpenAI's completions, as vLLM and SGLang extend them ------------------------------

_ID = re.compile(r"token_id:([0-9]{1,10})")  # a token whose id is wanted


class _Logprobs(msgspec.Struct):
    token_logprobs: list[float | None] | None = None
    tokens: msgspec.Raw = msgspec.Raw(b"null")


class _Choice(msgspec.Struct):
    token_ids: list[int] | None = None
    logprobs: _Logprobs | None = None
    finish_reason: str | None = None
    text: Any = None
    prompt_token_ids: Any = None


class _Choices(msgspec.Struct):
    choices: list[msgspec.Raw]
    model: Any = None
    prompt_token_ids: Any = None


_CHOICE = msgspec.json.Decoder(_Choice)
_CHOICES = msgspec.json.Decoder(_Choices)
_TOKENS = msgspec.json.Decoder(list[str | None] | None)


def _is_another_model(asked: str, named: Any) -> bool:
    # Some name a folder or nothing, and some add an owner or a version.
    if not isinstance(named, str) or named.startswith(("/", ".")):
        return False
    a, b = (name.rstrip("/").rpartition("/")[2].lower() for name in (asked, named))
    return not a.startswith(b) and not b.startswith(a)


def read_completions(body: bytes, asked: str = "") -> Iterator[TokenChoice]:
    """Read a reply of `/v1/completions`; see `TokenRoute.read`."""
    reply = _CHOICES.decode(body)
    if _is_another_model(asked, reply.model):
        raise bad_reply(f"the reply is of the model {reply.model!r}, not {asked!r}")
    for raw in reply.choices:
        choice = _CHOICE.decode(raw)
        ids, of_tokens = choice.token_ids, choice.logprobs or _Logprobs()
        if ids is None:
            names = _TOKENS.decode(of_tokens.tokens) or [None]
            written = [_ID.fullmatch(name or "") for name in names]
            ids = [int(each[1]) for each in written if each is not None]
            if len(ids) < len(written):
                raise bad_reply("the reply has no token ids")
        if of_tokens.token_logprobs is None:
            raise bad_reply("the reply has no log-probabilities")
        prompt = choice.prompt_token_ids or reply.prompt_token_ids
        both, end = (ids, of_tokens.token_logprobs), choice.finish_reason
        yield TokenChoice(*both, end, choice.text, prompt)


def _completions_body(
    prompt: list[int], sampling: Fields, model: str, extra: Fields
) -> Body:
    return {
        "model": model,
        "prompt": prompt,
        **NEUTRAL,
        **_with_limit(sampling, "max_tokens"),
        **extra,
        # No token but the sampled one, which is always returned.
        "logprobs": 0,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
    }


COMPLETIONS = TokenRoute("/v1/completions", _completions_body, read_completions)


# -- the server of Atropos' example trainer --------------------------------------------


class _AtroposReply(msgspec.Struct):
    logprobs: list[msgspec.Raw]
    finish_reasons: list[Any]
    text: list[Any] | None = None
    prompt_token_ids: Any = None


_ATROPOS = msgspec.json.Decoder(_AtroposReply)
_ATROPOS_TOKENS = msgspec.json.Decoder(list[list[dict[int, float | None]]])


def read_atropos(body: bytes, asked: str = "") -> Iterator[TokenChoice]:
    """Read a reply of Atropos' vLLM server, which names no model."""
    reply = _ATROPOS.decode(body)
    texts = reply.text or [None] * len(reply.logprobs)
    ends = reply.finish_reasons
    for raw, end, text in zip(reply.logprobs, ends, texts, strict=False):
        firsts = [next(iter(each[0].items())) for each in _ATROPOS_TOKENS.decode(raw)]
        ids, logprobs = [token for token, _ in firsts], [logp for _, logp in firsts]
        yield TokenChoice(ids, logprobs, end, text, reply.prompt_token_ids)


def _atropos_body(
    prompt: list[int], sampling: Fields, model: str, extra: Fields
) -> Body:
    own = {"prompt": {"prompt_token_ids": prompt}, "logprobs": 0}
    return {**own, **_with_limit(sampling, "max_tokens"), **extra}


ATROPOS = TokenRoute("/generate", _atropos_body, read_atropos)


# -- SGLang ----------------------------------------------------------------------------


class _SglangMeta(msgspec.Struct):
    output_token_logprobs: msgspec.Raw
    finish_reason: Any = None


class _SglangResult(msgspec.Struct):
    meta_info: _SglangMeta
    text: Any = None


class _SglangToken(msgspec.Struct, array_like=True):
    logprob: float | None
    id: int


_SGLANG = msgspec.json.Decoder(list[_SglangResult] | _SglangResult)
_SGLANG_TOKENS = msgspec.json.Decoder(list[_SglangToken])


def read_sglang(body: bytes, asked: str = "") -> Iterator[TokenChoice]:
    """Read a reply of SGLang, which names no model here."""
    results = _SGLANG.decode(body)
    for each in results if isinstance(results, list) else [results]:
        tokens = _SGLANG_TOKENS.decode(each.meta_info.output_token_logprobs)
        ids, logprobs = [t.id for t in tokens], [t.logprob for t in tokens]
        yield TokenChoice(ids, logprobs, each.meta_info.finish_reason, each.text)


def _sglang_body(
    prompt: list[int], sampling: Fields, model: str, extra: Fields
) -> Body:
    return {
        "input_ids": prompt,
        "sampling_params": {**_with_limit(sampling, "max_new_tokens"), **extra},
        "return_logprob": True,
        "return_text_in_logprobs": False,
    }


SGLANG = TokenRoute("/generate", _sglang_body, read_sglang)

ROUTES = COMPLETIONS, ATROPOS, SGLANG
"""In the order in which they are tried; the type `sglang` begins with its own."""


# -- a chat ----------------------------------------------------------------------------


def chat_of(bodies: Iterable[bytes]) -> dict[str, Any]:
    """Return chats as one; raises one of `NO_SUCH_FORM` where one is none."""
    # orjson refuses half a pair of UTF-16.
    chats = [json.loads(body) for body in bodies]
    choices = [choice for chat in chats for choice in chat["choices"]]
    if not all(isinstance(choice["message"], dict) for choice in choices):
        raise TypeError("a choice without a message")
    return {**chats[0], "choices": choices}
