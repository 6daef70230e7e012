"""Server protocols: routes of token ids with log-probabilities, and the chat.

    /v1/completions     vLLM from 0.10.2 (TRL's server is one, from TRL 1.12) and SGLang
                        from July 2026, with `return_token_ids`; older vLLM with
                        `return_tokens_as_token_ids`
    /generate, Atropos  the vLLM server of Atropos' example trainer
    /generate, SGLang   SGLang

The routes of token ids take the prompt as ids, so that a trainer learns from the ids
that the model was given. Replies are read choice by choice: those of `/generate` have
an object or a list for every token, megabytes in all, and reading one holds the GIL.

Source: atroposlib 0.4.0, VLLMServer and SGLangServer.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from rg_env.inference.completions import Completion
from rg_env.inference.connection import bad_reply
from rg_env.inference.prompts import Prompt
from rg_env.reward.chat_messages import rejoin_thinking

# Values without an effect. For fields that are not sent, vLLM uses the model's
# `generation_config.json`.
NEUTRAL_SAMPLING = {
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}

# Errors of parsing a reply of another form; those of msgspec are ValueErrors.
PARSE_ERRORS = AttributeError, LookupError, RecursionError, TypeError, ValueError

Body = dict[str, Any]
Fields = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Route:
    """An endpoint of a server, with the format of its requests and replies.

    Attributes:
        path: The path of the endpoint.
        body: Makes the body of a request from the prompt, the sampling with the fields
            of the setting `extra_body`, and the model's name.
        read: Yields the unchecked completions of a reply's body, or raises one of
            `PARSE_ERRORS`.
    """

    path: str
    body: Callable[[Prompt, Fields, str], Body]
    read: Callable[[bytes, Prompt], Iterator[Completion]]


def _rename_token_limit(sampling: Fields, name: str) -> Body:
    names = ("max_tokens", "max_new_tokens", "max_completion_tokens")
    return {name if key in names else key: value for key, value in sampling.items()}


# -- OpenAI's completions, as vLLM and SGLang extend them ------------------------------

# A token as `return_tokens_as_token_ids` writes it.
_TOKEN_ID = re.compile(r"token_id:([0-9]{1,10})")


class _Logprobs(msgspec.Struct):
    token_logprobs: list[float | None] | None = None
    tokens: msgspec.Raw = msgspec.Raw(b"null")


class _Choice(msgspec.Struct):
    token_ids: list[int] | None = None
    logprobs: _Logprobs | None = None
    finish_reason: str | None = None
    text: Any = None


class _Choices(msgspec.Struct):
    choices: list[msgspec.Raw]
    model: Any = None


_CHOICE = msgspec.json.Decoder(_Choice)
_CHOICES = msgspec.json.Decoder(_Choices)
_TOKENS = msgspec.json.Decoder(list[str | None] | None)


def _read_completions(body: bytes, _: Prompt) -> Iterator[Completion]:
    reply = _CHOICES.decode(body)
    for raw in reply.choices:
        choice = _CHOICE.decode(raw)
        logprobs = choice.logprobs or _Logprobs()
        ids = choice.token_ids
        if ids is None:
            ids = _ids_of_tokens(_TOKENS.decode(logprobs.tokens))
        if logprobs.token_logprobs is None:
            raise bad_reply("the reply has no log-probabilities")
        yield Completion(
            choice.text,
            ids,
            logprobs.token_logprobs,
            choice.finish_reason,
            model=reply.model,
        )


def _ids_of_tokens(tokens: list[str | None] | None) -> list[int]:
    """Return the ids that older vLLM writes in the place of tokens."""
    if tokens is not None:
        matches = [_TOKEN_ID.fullmatch(token or "") for token in tokens]
        ids = [int(match[1]) for match in matches if match is not None]
        if len(ids) == len(tokens):
            return ids
    raise bad_reply("the reply has no token ids")


def _completions_body(prompt: Prompt, sampling: Fields, model: str) -> Body:
    return {
        "model": model,
        "prompt": list(prompt.tokens),
        **NEUTRAL_SAMPLING,
        **_rename_token_limit(sampling, "max_tokens"),
        # The number of other tokens; the sampled one is always returned.
        "logprobs": 0,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
    }


COMPLETIONS = Route("/v1/completions", _completions_body, _read_completions)


# -- the server of Atropos' example trainer --------------------------------------------


class _AtroposReply(msgspec.Struct):
    logprobs: list[msgspec.Raw]
    finish_reasons: list[Any]
    text: list[Any] | None = None


_ATROPOS = msgspec.json.Decoder(_AtroposReply)
_ATROPOS_TOKENS = msgspec.json.Decoder(list[list[dict[int, float | None]]])


def _read_atropos(body: bytes, _: Prompt) -> Iterator[Completion]:
    reply = _ATROPOS.decode(body)
    texts = reply.text or [None] * len(reply.logprobs)
    rows = zip(reply.logprobs, reply.finish_reasons, texts, strict=True)
    for raw, reason, text in rows:
        # The first entry of each position is the sampled token.
        pairs = [next(iter(each[0].items())) for each in _ATROPOS_TOKENS.decode(raw)]
        ids = [token for token, _ in pairs]
        logprobs = [logprob for _, logprob in pairs]
        yield Completion(text, ids, logprobs, reason)


def _atropos_body(prompt: Prompt, sampling: Fields, model: str) -> Body:
    return {
        "prompt": {"prompt_token_ids": list(prompt.tokens)},
        "logprobs": 0,
        **_rename_token_limit(sampling, "max_tokens"),
    }


ATROPOS = Route("/generate", _atropos_body, _read_atropos)


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


def _read_sglang(body: bytes, _: Prompt) -> Iterator[Completion]:
    results = _SGLANG.decode(body)
    for each in results if isinstance(results, list) else [results]:
        meta = each.meta_info
        tokens = _SGLANG_TOKENS.decode(meta.output_token_logprobs)
        ids = [token.id for token in tokens]
        logprobs = [token.logprob for token in tokens]
        yield Completion(each.text, ids, logprobs, meta.finish_reason)


def _sglang_body(prompt: Prompt, sampling: Fields, model: str) -> Body:
    return {
        "input_ids": list(prompt.tokens),
        "sampling_params": _rename_token_limit(sampling, "max_new_tokens"),
        "return_logprob": True,
        "return_text_in_logprobs": False,
    }


SGLANG = Route("/generate", _sglang_body, _read_sglang)

# The order in which the probe tries them; SGLANG comes first for the type `sglang`.
ROUTES = (COMPLETIONS, ATROPOS, SGLANG)


# -- OpenAI's chat ---------------------------------------------------------------------


def _read_chat(body: bytes, prompt: Prompt) -> Iterator[Completion]:
    reply = json.loads(body)  # orjson rejects lone surrogates
    for choice in reply["choices"]:
        reason = choice.get("finish_reason")
        is_truncated = reason == "length"
        fields = choice["message"].items()
        message = {name: value for name, value in fields if isinstance(value, str)}
        if "refusal" in message:
            message.setdefault("content", message["refusal"])
        # Rows and extraction need the whole text.
        text = rejoin_thinking(
            message, thinking_open=prompt.thinking_open, is_truncated=is_truncated
        )
        # A model may use up its tokens with thinking that it does not show.
        if text is None and is_truncated:
            text = ""
        yield Completion(text, [], None, reason, model=reply.get("model"))


def _chat_body(prompt: Prompt, sampling: Fields, model: str) -> Body:
    messages = [dict(message) for message in prompt.messages]
    return {"model": model, "messages": messages, **sampling}


CHAT = Route("/v1/chat/completions", _chat_body, _read_chat)
