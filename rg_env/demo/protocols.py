"""How a simulated server is queried: as Atropos' vLLM, as SGLang, as OpenAI and vLLM.

    POST /generate              {"prompt": {"prompt_token_ids": [..]} | "text", ...}
    POST /generate              {"input_ids": [..], "sampling_params": {..}}
    POST /v1/completions        {"prompt": "..", "return_token_ids": true, ...}
    POST /v1/chat/completions   {"messages": [..], ...}

A protocol is pure: it reads the prompt in a request's body and shapes what was
generated for it. Only the prompt, `n` and the token limit are read; everything else in
a body is accepted and has no effect, but `stream`, which is refused.

Replies have the shapes that the client of atroposlib 0.4.0 reads, that openai's client
reads, and, where token ids are wanted, those of a stock vLLM 0.32.0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rg_env.demo.chat_tokenizer import build_prompt
from rg_env.demo.model import Generation

MAX_CHOICES = 1024
MAX_TOKENS = 1_000_000

Body = dict[str, Any]


class BadRequestError(ValueError):
    """A request that cannot be answered; its text says what was expected."""


@dataclass(frozen=True)
class Query:
    """One prompt, as text or tokens, and how many completions it gets, how long."""

    prompt: str | list[int]
    n: int
    max_tokens: int


@dataclass(frozen=True)
class Answer:
    """What was generated for one prompt, whose text and tokens are given."""

    prompt: str
    prompt_ids: Sequence[int]
    generations: Sequence[Generation]


@dataclass(frozen=True)
class InferenceProtocol:
    """One way of querying.

    Attributes:
        read: Body and default token limit to the prompt in it; raises
            `BadRequestError`.
        shape: Body and answer to the JSON to send, which may hold `orjson.Fragment`.
    """

    read: Callable[[Body, int], Query]
    shape: Callable[[Body, Answer], Any]


# -- fields of requests, tokens of replies ---------------------------------------------


def _read_int(body: Body, names: Sequence[str], default: int, highest: int) -> int:
    """Read the first of several fields that is given, as an integer in [1, highest]."""
    given = ((name, body[name]) for name in names if body.get(name) is not None)
    name, value = next(given, ("", default))
    if type(value) is int and 1 <= value <= highest:
        return value
    raise BadRequestError(
        f"`{name}`: expected an integer from 1 to {highest}, found {value!r}"
    )


def _read_prompt(value: Any, name: str) -> str | list[int]:
    """Return a prompt as it was given."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(type(t) is int for t in value):
        return value
    raise BadRequestError(
        f"`{name}`: expected a text or a list of token ids, not empty"
    )


def _build_query(
    prompt: str | list[int], body: Body, default_max_tokens: int, *limits: str
) -> Query:
    if body.get("stream"):
        raise BadRequestError("`stream`: the simulated server does not stream")
    n = _read_int(body, ["n"], 1, MAX_CHOICES)
    return Query(prompt, n, _read_int(body, limits, default_max_tokens, MAX_TOKENS))


def _encode_id(token: int | str, logprob: float | None) -> bytes:
    return json.dumps(token).encode()


def _encode_logprob(token: int | str, logprob: float | None) -> bytes:
    return json.dumps(logprob).encode()


# -- as Atropos' own vLLM server -------------------------------------------------------


def _read_vllm(body: Body, default: int) -> Query:
    prompt, name = body["prompt"], "prompt"
    if isinstance(prompt, dict):
        prompt, name = prompt.get("prompt_token_ids"), "prompt.prompt_token_ids"
    return _build_query(_read_prompt(prompt, name), body, default, "max_tokens")


def _encode_for_vllm(token: int | str, logprob: float | None) -> bytes:
    return b'[{"%s":%s}]' % (str(token).encode(), json.dumps(logprob).encode())


def _shape_vllm(body: Body, answer: Answer) -> Any:
    made = answer.generations
    return {
        "text": [generation.encode_text() for generation in made],
        "prompt": answer.prompt,
        "finish_reasons": [generation.finish_reason for generation in made],
        "logprobs": [generation.encode_tokens(_encode_for_vllm) for generation in made],
        "prompt_token_ids": answer.prompt_ids,
        "token_ids": [generation.encode_tokens(_encode_id) for generation in made],
    }


# -- as an SGLang server ---------------------------------------------------------------


def _read_sglang(body: Body, default: int) -> Query:
    name = "input_ids" if "input_ids" in body else "text"
    params = body.get("sampling_params") or {}
    if not isinstance(params, dict):
        raise BadRequestError("`sampling_params`: expected an object")
    return _build_query(
        _read_prompt(body.get(name), name), params, default, "max_new_tokens"
    )


def _encode_for_sglang(token: int | str, logprob: float | None) -> bytes:
    return json.dumps([logprob, token, None]).encode()


def _shape_sglang(body: Body, answer: Answer) -> Any:
    results = [
        {
            "text": generation.encode_text(),
            "meta_info": {
                "prompt_tokens": len(answer.prompt_ids),
                "completion_tokens": generation.num_tokens,
                "finish_reason": {"type": generation.finish_reason},
                "output_token_logprobs": generation.encode_tokens(_encode_for_sglang),
            },
        }
        for generation in answer.generations
    ]
    return results[0] if len(results) == 1 else results


# -- as a server of OpenAI's protocol, and as vLLM extends it --------------------------


def _read_completion(body: Body, default: int) -> Query:
    prompt = _read_prompt(body.get("prompt"), "prompt")
    return _build_query(prompt, body, default, "max_tokens")


def _read_chat(body: Body, default: int) -> Query:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequestError("`messages`: expected a list of messages, not empty")
    prompt = build_prompt([_read_message(message) for message in messages])
    return _build_query(prompt, body, default, "max_completion_tokens", "max_tokens")


def _read_message(message: Any) -> tuple[str, str]:
    if isinstance(message, dict):
        role, content = message.get("role"), message.get("content")
        if isinstance(role, str) and isinstance(content, str):
            return role, content
    raise BadRequestError(
        "`messages`: expected objects with the texts `role` and `content`"
    )


def _encode_as_token(token: int | str, logprob: float | None) -> bytes:
    return b'"token_id:%s"' % str(token).encode()


def _shape_openai(kind: str, body: Body, answer: Answer, choices: list[Body]) -> Body:
    """Return a reply with what all choices of OpenAI's protocol have."""
    prompt_tokens = len(answer.prompt_ids)
    completion_tokens = sum(made.num_tokens for made in answer.generations)
    return {
        "id": "simulated",
        "object": kind,
        # The time would be the one thing that differs between two equal runs.
        "created": 0,
        "model": body.get("model") or "simulated",
        "choices": [
            {
                "index": index,
                "logprobs": None,
                "finish_reason": answer.generations[index].finish_reason,
                **choice,
            }
            for index, choice in enumerate(choices)
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def _shape_completion(body: Body, answer: Answer) -> Body:
    choices: list[Body] = []
    for generation in answer.generations:
        choice: Body = {"text": generation.encode_text()}
        if body.get("return_token_ids"):
            choice["token_ids"] = generation.encode_tokens(_encode_id)
            choice["prompt_token_ids"] = answer.prompt_ids
        if body.get("logprobs") is not None:
            scored: Body = {"token_logprobs": generation.encode_tokens(_encode_logprob)}
            if body.get("return_tokens_as_token_ids"):
                scored["tokens"] = generation.encode_tokens(_encode_as_token)
            choice["logprobs"] = scored
        choices.append(choice)
    return _shape_openai("text_completion", body, answer, choices)


def _shape_chat(body: Body, answer: Answer) -> Body:
    choices: list[Body] = [
        {"message": {"role": "assistant", "content": generation.encode_text()}}
        for generation in answer.generations
    ]
    return _shape_openai("chat.completion", body, answer, choices)


VLLM = InferenceProtocol(_read_vllm, _shape_vllm)
SGLANG = InferenceProtocol(_read_sglang, _shape_sglang)
COMPLETION = InferenceProtocol(_read_completion, _shape_completion)
CHAT = InferenceProtocol(_read_chat, _shape_chat)


def choose_native(body: Body) -> InferenceProtocol:
    """Tell the native `/generate` protocols apart; `BadRequestError` if neither's."""
    if "sampling_params" in body or "input_ids" in body:
        return SGLANG
    if "prompt" in body:
        return VLLM
    raise BadRequestError(
        "expected `prompt` (vLLM) or `input_ids` with `sampling_params` (SGLang),"
        f" found the fields {sorted(body)}"
    )
