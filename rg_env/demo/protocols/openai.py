"""As a server of OpenAI's protocol is asked, for texts, and as vLLM extends it.

    POST /v1/completions        {"prompt": "..", "return_token_ids": true, ...}
    POST /v1/chat/completions   {"messages": [..], ...}

Shapes as openai's client reads them, and those of a stock vLLM 0.32.0 where token ids
are asked for. `stream` is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rg_env.demo.chatml import build_prompt
from rg_env.demo.generation import Generation, encode_number
from rg_env.demo.protocols.protocol import (
    MAX_CHOICES,
    MAX_TOKENS,
    Answer,
    Ask,
    BadRequest,
    Body,
    InferenceProtocol,
    encode_id,
    read_int,
    read_prompt,
)


def _build_ask(
    body: Body, prompt: str | list[int], limits: Sequence[str], default: int
) -> list[Ask]:
    if body.get("stream"):
        raise BadRequest("`stream`: the simulated server does not stream")
    n = read_int(body, ["n"], 1, MAX_CHOICES)
    return [Ask(prompt, n, read_int(body, limits, default, MAX_TOKENS))]


def _read_completion(body: Body, default_max_tokens: int) -> list[Ask]:
    prompt = read_prompt(body.get("prompt"), "prompt")
    return _build_ask(body, prompt, ["max_tokens"], default_max_tokens)


def _read_chat(body: Body, default_max_tokens: int) -> list[Ask]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("`messages`: expected a list of messages, not empty")
    prompt = build_prompt([_read_message(message) for message in messages])
    limits = ["max_completion_tokens", "max_tokens"]
    return _build_ask(body, prompt, limits, default_max_tokens)


def _read_message(message: Any) -> tuple[str, str]:
    if isinstance(message, dict):
        role, content = message.get("role"), message.get("content")
        if isinstance(role, str) and isinstance(content, str):
            return role, content
    raise BadRequest("`messages`: expected objects with the texts `role` and `content`")


def _shape_as(
    kind: str, shape_choice: Callable[[Body, Generation], Body]
) -> Callable[[Body, Sequence[Answer]], Any]:
    def shape(body: Body, answers: Sequence[Answer]) -> Any:
        (answer,) = answers
        made = answer.generations
        prompt_tokens = len(answer.prompt_ids)
        completion_tokens = sum(generation.num_tokens for generation in made)
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
                    "finish_reason": generation.finish_reason,
                    **shape_choice(body, generation),
                    **_told_prompt(body, answer),
                }
                for index, generation in enumerate(made)
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            },
        }

    return shape


def _encode_logprob(token: int | str, logprob: float | None) -> bytes:
    return encode_number(logprob)


def _encode_as_token(token: int | str, logprob: float | None) -> bytes:
    return b'"token_id:%s"' % str(token).encode()


def _told_prompt(body: Body, answer: Answer) -> Body:
    is_asked = body.get("return_token_ids") and "prompt" in body
    return {"prompt_token_ids": answer.prompt_ids} if is_asked else {}


def _shape_text(body: Body, generation: Generation) -> Body:
    shaped: Body = {"text": generation.encode_text()}
    if body.get("return_token_ids"):
        shaped["token_ids"] = generation.encode_tokens(encode_id)
    if body.get("logprobs") is not None:
        scored: Body = {"token_logprobs": generation.encode_tokens(_encode_logprob)}
        if body.get("return_tokens_as_token_ids"):
            scored["tokens"] = generation.encode_tokens(_encode_as_token)
        shaped["logprobs"] = scored
    return shaped


def _shape_message(body: Body, generation: Generation) -> Body:
    return {"message": {"role": "assistant", "content": generation.encode_text()}}


_WITHOUT_LOGPROBS = {
    "choices": [
        {"text": "", "token_ids": [1], "logprobs": None, "finish_reason": "stop"}
    ]
}

COMPLETION = InferenceProtocol(
    _read_completion,
    _shape_as("text_completion", _shape_text),
    sends_tokens=True,
    broken={
        "wrong_shape": {"choices": 3},
        "empty_object": {},
        "no_logprobs": _WITHOUT_LOGPROBS,
    },
)
CHAT = InferenceProtocol(
    _read_chat, _shape_as("chat.completion", _shape_message), sends_tokens=False
)
