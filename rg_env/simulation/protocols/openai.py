"""As a server of OpenAI's protocol is asked, for texts.

    POST /v1/completions        {"prompt": "..", ...}
    POST /v1/chat/completions   {"messages": [..], ...}

Shapes as the client of atroposlib 0.4.0 reads them. `stream` is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rg_env.simulation.chatml import build_prompt
from rg_env.simulation.generation import Generation
from rg_env.simulation.protocols.protocol import (
    MAX_CHOICES,
    MAX_TOKENS,
    Answer,
    Ask,
    BadRequest,
    Body,
    InferenceProtocol,
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
    kind: str, shape_choice: Callable[[Generation], Body]
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
                    **shape_choice(generation),
                    "logprobs": None,
                    "finish_reason": generation.finish_reason,
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


def _shape_text(generation: Generation) -> Body:
    return {"text": generation.encode_text()}


def _shape_message(generation: Generation) -> Body:
    return {"message": {"role": "assistant", "content": generation.encode_text()}}


COMPLETION = InferenceProtocol(
    _read_completion, _shape_as("text_completion", _shape_text), sends_tokens=False
)
CHAT = InferenceProtocol(
    _read_chat, _shape_as("chat.completion", _shape_message), sends_tokens=False
)
