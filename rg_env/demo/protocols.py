"""How a simulated server is queried: as Atropos' vLLM, as SGLang, as OpenAI and vLLM.

    POST /generate              {"prompt": {"prompt_token_ids": [..]} | "text", ...}
    POST /generate              {"input_ids": [..], "sampling_params": {..}}
    POST /v1/completions        {"prompt": "..", "return_token_ids": true, ...}
    POST /v1/chat/completions   {"messages": [..], ...}

Only the prompt, `n` and the token limit are read; everything else in a body is accepted
and has no effect, but `stream`, which is refused.

Replies have the shapes that the client of atroposlib 0.4.0 reads, that openai's client
reads, and, where token ids are wanted, those of a stock vLLM 0.32.0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from rg_env.demo.chat_tokenizer import build_prompt
from rg_env.demo.model import Generation

Body = dict[str, Any]
Prompt = str | Annotated[list[int], msgspec.Meta(min_length=1)]
Choices = Annotated[int, msgspec.Meta(ge=1, le=1024)]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None


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


InferenceProtocol = Callable[[Body, Answer], Any]
"""From a request's body and its answer to the JSON to send, which may hold
`orjson.Fragment`."""


# -- requests --------------------------------------------------------------------------


class _Limits(msgspec.Struct):
    n: Choices | None = None
    max_tokens: Tokens = None
    max_new_tokens: Tokens = None
    max_completion_tokens: Tokens = None
    stream: bool | None = False


class _Ids(msgspec.Struct):
    prompt_token_ids: Prompt


class _Message(msgspec.Struct):
    role: str
    content: str


class _Request(_Limits):
    prompt: Prompt | _Ids | None = None
    input_ids: Prompt | None = None
    text: Prompt | None = None
    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)] | None = None
    sampling_params: _Limits | None = None


def read_query(body: Body, default_max_tokens: int) -> Query:
    """Read a request of any protocol; raises `BadRequestError`."""
    try:
        request = msgspec.convert(body, _Request)
    except msgspec.ValidationError as error:
        raise BadRequestError(str(error).replace("`$.", "`")) from error
    limits: _Limits = request.sampling_params or request
    if limits.stream:
        raise BadRequestError("`stream`: the simulated server does not stream")
    given = (limits.max_completion_tokens, limits.max_tokens, limits.max_new_tokens)
    limit = next((limit for limit in given if limit is not None), default_max_tokens)
    prompt = request.prompt or request.input_ids or request.text
    if isinstance(prompt, _Ids):
        prompt = prompt.prompt_token_ids
    if request.messages:
        prompt = build_prompt([(m.role, m.content) for m in request.messages])
    if prompt is None:
        raise BadRequestError(
            "expected `prompt` (vLLM), `input_ids` with `sampling_params` (SGLang) or"
            f" `messages`, found the fields {sorted(body)}"
        )
    return Query(prompt, limits.n or 1, limit)


# -- replies ---------------------------------------------------------------------------


def _encode_id(token: int | str, logprob: float | None) -> bytes:
    return json.dumps(token).encode()


def _encode_logprob(token: int | str, logprob: float | None) -> bytes:
    return json.dumps(logprob).encode()


def _encode_as_token(token: int | str, logprob: float | None) -> bytes:
    return b'"token_id:%s"' % str(token).encode()


def _encode_for_vllm(token: int | str, logprob: float | None) -> bytes:
    return b'[{"%s":%s}]' % (str(token).encode(), json.dumps(logprob).encode())


def _encode_for_sglang(token: int | str, logprob: float | None) -> bytes:
    return json.dumps([logprob, token, None]).encode()


def _shape_vllm(body: Body, answer: Answer) -> Any:
    all_of = answer.generations
    return {
        "text": [each.encode_text() for each in all_of],
        "prompt": answer.prompt,
        "finish_reasons": [each.finish_reason for each in all_of],
        "logprobs": [each.encode_tokens(_encode_for_vllm) for each in all_of],
        "prompt_token_ids": answer.prompt_ids,
        "token_ids": [each.encode_tokens(_encode_id) for each in all_of],
    }


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


def _shape_openai(kind: str, body: Body, answer: Answer, choices: list[Body]) -> Body:
    """Return a reply with what all choices of OpenAI's protocol have."""
    prompt_tokens = len(answer.prompt_ids)
    completion_tokens = sum(each.num_tokens for each in answer.generations)
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


VLLM: InferenceProtocol = _shape_vllm
SGLANG: InferenceProtocol = _shape_sglang
COMPLETION: InferenceProtocol = _shape_completion
CHAT: InferenceProtocol = _shape_chat


def choose_native(body: Body) -> InferenceProtocol:
    """Tell the native `/generate` protocols apart."""
    is_sglang = "sampling_params" in body or "input_ids" in body
    return SGLANG if is_sglang else VLLM
