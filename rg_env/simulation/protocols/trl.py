"""As the vLLM server of TRL is asked.

    POST /generate/   {"prompts": ["..", ..], ...}

Shapes as the client of atroposlib 0.4.0 reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rg_env.simulation.protocols.protocol import (
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


def _read(body: Body, default_max_tokens: int) -> list[Ask]:
    prompts = body.get("prompts")
    if not isinstance(prompts, list) or not prompts:
        raise BadRequest("`prompts`: expected a list of texts, not empty")
    n = read_int(body, ["n"], 1, MAX_CHOICES)
    limit = read_int(body, ["max_tokens"], default_max_tokens, MAX_TOKENS)
    return [Ask(read_prompt(prompt, "prompts"), n, limit) for prompt in prompts]


def _shape(body: Body, answers: Sequence[Answer]) -> Any:
    return {
        "completion_ids": [
            generation.encode_tokens(encode_id)
            for answer in answers
            for generation in answer.generations
        ]
    }


TRL = InferenceProtocol(_read, _shape, sends_tokens=True)
