"""The four ways in which a host asks an inference server, as pure functions.

For each way one function reads a request body and one shapes the answer:

    vllm         POST /generate   {"prompt": {"prompt_token_ids": [..]} | "text", ...}
    sglang       POST /generate   {"input_ids": [..], "sampling_params": {..}}
    trl          POST /generate/  {"prompts": ["..", ..], ...}
    openai       POST /v1/completions, /v1/chat/completions

Shapes as the clients of atroposlib 0.4.0 read them. Only the prompt, `n` and the token
limit are read; everything else in a body is accepted and has no effect, except
`stream`, which is refused.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rg_env.simulation.chatml import build_prompt
from rg_env.simulation.engine import Generation

MAX_CHOICES = 1024
MAX_TOKENS = 1_000_000

Body = dict[str, Any]


class BadRequest(ValueError):
    """A request that cannot be answered; its text says what was expected."""


@dataclass(frozen=True)
class Ask:
    """One prompt to be answered.

    Attributes:
        prompt: Its text, or its tokens.
        n: Number of completions, in [1, 1024].
        max_tokens: Longest completion in tokens, in [1, 1_000_000].
    """

    prompt: str | list[int]
    n: int
    max_tokens: int


@dataclass(frozen=True)
class Answer:
    """What was generated for one prompt.

    Attributes:
        prompt: Its text.
        prompt_tokens: Its length in tokens.
        generations: One per choice.
    """

    prompt: str
    prompt_tokens: int
    generations: list[Generation]


@dataclass(frozen=True)
class Dialect:
    """One way of asking: how a body is read and how the answers are shaped.

    Attributes:
        read: Body and default token limit to the prompts in it.
        shape: Body and one answer per prompt to the JSON value to send.
    """

    read: Callable[[Body, int], list[Ask]]
    shape: Callable[[Body, list[Answer]], Any]


def choose_native(body: Body) -> Dialect:
    """Tell the two native `/generate` dialects apart.

    Raises:
        BadRequest: The body is of neither.
    """
    if "sampling_params" in body or "input_ids" in body:
        return SGLANG
    if "prompt" in body:
        return VLLM
    raise BadRequest(
        "expected `prompt` (vLLM) or `input_ids` with `sampling_params` (SGLang),"
        f" found the fields {sorted(body)}"
    )


def _read_int(body: Body, names: Sequence[str], default: int, highest: int) -> int:
    """Read the first of several fields that is given, as an integer in [1, highest]."""
    for name in names:
        value = body.get(name)
        if value is None:
            continue
        if type(value) is not int or not 1 <= value <= highest:
            raise BadRequest(
                f"`{name}`: expected an integer from 1 to {highest}, found {value!r}"
            )
        return value
    return default


def _read_prompt(value: Any, name: str) -> str | list[int]:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(type(t) is int for t in value):
        return value
    raise BadRequest(f"`{name}`: expected a text or a list of token ids, not empty")


def _read_vllm(body: Body, default_max_tokens: int) -> list[Ask]:
    prompt = body["prompt"]
    if isinstance(prompt, dict):
        prompt = _read_prompt(prompt.get("prompt_token_ids"), "prompt.prompt_token_ids")
    return [
        Ask(
            _read_prompt(prompt, "prompt"),
            _read_int(body, ["n"], 1, MAX_CHOICES),
            _read_int(body, ["max_tokens"], default_max_tokens, MAX_TOKENS),
        )
    ]


def _shape_vllm(body: Body, answers: list[Answer]) -> Any:
    (answer,) = answers
    made = answer.generations
    return {
        "text": [generation.text for generation in made],
        "prompt": answer.prompt,
        "token_ids": [generation.token_ids for generation in made],
        "logprobs": [
            [
                [{token: logprob}]
                for token, logprob in zip(g.token_ids, g.logprobs, strict=True)
            ]
            for g in made
        ],
        "finish_reasons": [generation.finish_reason for generation in made],
    }


def _read_sampling_params(body: Body) -> Body:
    params = body.get("sampling_params") or {}
    if not isinstance(params, dict):
        raise BadRequest("`sampling_params`: expected an object")
    return params


def _read_sglang(body: Body, default_max_tokens: int) -> list[Ask]:
    name = "input_ids" if "input_ids" in body else "text"
    params = _read_sampling_params(body)
    return [
        Ask(
            _read_prompt(body.get(name), name),
            _read_int(params, ["n"], 1, MAX_CHOICES),
            _read_int(params, ["max_new_tokens"], default_max_tokens, MAX_TOKENS),
        )
    ]


def _shape_sglang(body: Body, answers: list[Answer]) -> Any:
    (answer,) = answers
    results = [
        {
            "text": generation.text,
            "meta_info": {
                "prompt_tokens": answer.prompt_tokens,
                "completion_tokens": len(generation.token_ids),
                "finish_reason": {"type": generation.finish_reason},
                "output_token_logprobs": [
                    [logprob, token, None]
                    for logprob, token in zip(
                        generation.logprobs, generation.token_ids, strict=True
                    )
                ],
            },
        }
        for generation in answer.generations
    ]
    return results[0] if len(results) == 1 else results


def _read_trl(body: Body, default_max_tokens: int) -> list[Ask]:
    prompts = body.get("prompts")
    if not isinstance(prompts, list) or not prompts:
        raise BadRequest("`prompts`: expected a list of texts, not empty")
    n = _read_int(body, ["n"], 1, MAX_CHOICES)
    limit = _read_int(body, ["max_tokens"], default_max_tokens, MAX_TOKENS)
    return [Ask(_read_prompt(prompt, "prompts"), n, limit) for prompt in prompts]


def _shape_trl(body: Body, answers: list[Answer]) -> Any:
    return {
        "completion_ids": [
            generation.token_ids
            for answer in answers
            for generation in answer.generations
        ]
    }


def _refuse_stream(body: Body) -> None:
    if body.get("stream"):
        raise BadRequest("`stream`: the simulated server does not stream")


def _read_completion(body: Body, default_max_tokens: int) -> list[Ask]:
    _refuse_stream(body)
    return [
        Ask(
            _read_prompt(body.get("prompt"), "prompt"),
            _read_int(body, ["n"], 1, MAX_CHOICES),
            _read_int(body, ["max_tokens"], default_max_tokens, MAX_TOKENS),
        )
    ]


def _read_chat(body: Body, default_max_tokens: int) -> list[Ask]:
    _refuse_stream(body)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("`messages`: expected a list of messages, not empty")
    limits = ["max_completion_tokens", "max_tokens"]
    return [
        Ask(
            build_prompt([_read_message(message) for message in messages]),
            _read_int(body, ["n"], 1, MAX_CHOICES),
            _read_int(body, limits, default_max_tokens, MAX_TOKENS),
        )
    ]


def _read_message(message: Any) -> tuple[str, str]:
    if isinstance(message, dict):
        role, content = message.get("role"), message.get("content")
        if isinstance(role, str) and isinstance(content, str):
            return role, content
    raise BadRequest("`messages`: expected objects with the texts `role` and `content`")


def _shape_openai(
    body: Body, answers: list[Answer], kind: str, choices: list[Body]
) -> Body:
    (answer,) = answers
    completion_tokens = sum(len(g.token_ids) for g in answer.generations)
    return {
        "id": "simulated",
        "object": kind,
        # The time would be the one thing that differs between two equal runs.
        "created": 0,
        "model": body.get("model") or "simulated",
        "choices": choices,
        "usage": {
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": answer.prompt_tokens + completion_tokens,
        },
    }


def _shape_completion(body: Body, answers: list[Answer]) -> Any:
    choices = [
        {
            "index": index,
            "text": generation.text,
            "logprobs": None,
            "finish_reason": generation.finish_reason,
        }
        for index, generation in enumerate(answers[0].generations)
    ]
    return _shape_openai(body, answers, "text_completion", choices)


def _shape_chat(body: Body, answers: list[Answer]) -> Any:
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": generation.text},
            "logprobs": None,
            "finish_reason": generation.finish_reason,
        }
        for index, generation in enumerate(answers[0].generations)
    ]
    return _shape_openai(body, answers, "chat.completion", choices)


VLLM = Dialect(_read_vllm, _shape_vllm)
SGLANG = Dialect(_read_sglang, _shape_sglang)
TRL = Dialect(_read_trl, _shape_trl)
COMPLETION = Dialect(_read_completion, _shape_completion)
CHAT = Dialect(_read_chat, _shape_chat)
