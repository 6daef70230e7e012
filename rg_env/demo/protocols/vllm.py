"""As Atropos' own vLLM server is asked.

    POST /generate   {"prompt": {"prompt_token_ids": [..]} | "text", ...}

Shapes as the client of atroposlib 0.4.0 reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rg_env.demo.generation import encode_number
from rg_env.demo.protocols.protocol import (
    MAX_CHOICES,
    MAX_TOKENS,
    Answer,
    Ask,
    Body,
    InferenceProtocol,
    encode_id,
    read_int,
    read_prompt,
)


def _read(body: Body, default_max_tokens: int) -> list[Ask]:
    prompt, name = body["prompt"], "prompt"
    if isinstance(prompt, dict):
        name = "prompt.prompt_token_ids"
        prompt = prompt.get("prompt_token_ids")
    return [
        Ask(
            read_prompt(prompt, name),
            read_int(body, ["n"], 1, MAX_CHOICES),
            read_int(body, ["max_tokens"], default_max_tokens, MAX_TOKENS),
        )
    ]


def _encode_scored(token: int | str, logprob: float | None) -> bytes:
    return b'[{"%s":%s}]' % (str(token).encode(), encode_number(logprob))


def _shape(body: Body, answers: Sequence[Answer]) -> Any:
    (answer,) = answers
    made = answer.generations
    return {
        "text": [generation.encode_text() for generation in made],
        "prompt": answer.prompt,
        "finish_reasons": [generation.finish_reason for generation in made],
        "logprobs": [generation.encode_tokens(_encode_scored) for generation in made],
        "prompt_token_ids": answer.prompt_ids,
        "token_ids": [generation.encode_tokens(encode_id) for generation in made],
    }


VLLM = InferenceProtocol(
    _read,
    _shape,
    sends_tokens=True,
    broken={
        "wrong_shape": {"logprobs": "none", "finish_reasons": 3},
        "empty_object": {},
        "no_logprobs": {"logprobs": None, "finish_reasons": ["stop"]},
    },
)
