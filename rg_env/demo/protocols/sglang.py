"""As an SGLang server is asked.

    POST /generate   {"input_ids": [..], "sampling_params": {..}}

Shapes as the client of atroposlib 0.4.0 reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rg_env.demo.generation import Generation, encode_number
from rg_env.demo.protocols.protocol import (
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


def _read(body: Body, default_max_tokens: int) -> list[Ask]:
    name = "input_ids" if "input_ids" in body else "text"
    params = body.get("sampling_params") or {}
    if not isinstance(params, dict):
        raise BadRequest("`sampling_params`: expected an object")
    return [
        Ask(
            read_prompt(body.get(name), name),
            read_int(params, ["n"], 1, MAX_CHOICES),
            read_int(params, ["max_new_tokens"], default_max_tokens, MAX_TOKENS),
        )
    ]


def _encode_scored(token: int | str, logprob: float | None) -> bytes:
    shown = f'"{token}"' if isinstance(token, str) else str(token)
    return b"[%s,%s,null]" % (encode_number(logprob), shown.encode())


def _shape_one(answer: Answer, generation: Generation) -> Any:
    return {
        "text": generation.encode_text(),
        "meta_info": {
            "prompt_tokens": len(answer.prompt_ids),
            "completion_tokens": generation.num_tokens,
            "finish_reason": {"type": generation.finish_reason},
            "output_token_logprobs": generation.encode_tokens(_encode_scored),
        },
    }


def _shape(body: Body, answers: Sequence[Answer]) -> Any:
    (answer,) = answers
    results = [_shape_one(answer, generation) for generation in answer.generations]
    return results[0] if len(results) == 1 else results


_WITHOUT_TOKENS = [{"text": "", "meta_info": {"finish_reason": {"type": "stop"}}}]

SGLANG = InferenceProtocol(
    _read,
    _shape,
    sends_tokens=True,
    broken=dict.fromkeys(
        ("wrong_shape", "empty_object", "no_logprobs"), _WITHOUT_TOKENS
    ),
)
