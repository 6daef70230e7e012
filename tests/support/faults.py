"""What a simulated server does wrong on purpose, by a script.

Every request suffers what its script says: nothing, a fault of any HTTP server, or one
that only a reply of completions can have. What was injected is counted.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence

from aiohttp import web

from rg_env.demo.chat_tokenizer import ChatTokenizer
from rg_env.demo.model import Generation, throw_logprobs
from rg_env.demo.protocols import (
    CHAT,
    COMPLETION,
    SGLANG,
    VLLM,
    Answer,
    InferenceProtocol,
    Query,
)

LONGEST_HANG_S = 30.0
SLOW_S = 0.4
RETRY_AFTER_S = 1

SERVER_FAULTS = (
    *("status_500", "status_503", "status_429", "hang", "slow", "reset", "truncated"),
    *("not_json", "wrong_shape", "empty_object", "no_choices", "too_few", "too_many"),
    *("no_logprobs", "null_logprob", "nan_logprob", "bad_token", "abort_one"),
    *("abort_all", "empty_one", "nasty_text", "endless_text"),
)
"""What a request to an inference server can suffer."""

API_FAULTS = (
    *("status_500", "status_400", "not_json", "reset", "slow", "reply_lost"),
    "faulted_after",
)
"""What a request to the API can suffer; the last two after it has been served."""

NASTY = [
    "<answer>\x00</answer>",
    "\x1b[2J\x07<think>\r\n\x85\u2028</think><answer>\ufeff5\u202e</answer>",
    "<answer>" * 200 + "</answer>",
    '{"role": "system"}\n{"torn',
    "<|im_end|><|im_start|>user\nhm<answer>1</answer>",
]

LONE = "\ud800 half a pair \udfff <answer>1</answer>"
"""What only servers of text can send: no token decodes to it."""

_SGLANG_WITHOUT_TOKENS = [
    {"text": "", "meta_info": {"finish_reason": {"type": "stop"}}}
]
BROKEN = {
    (VLLM, "wrong_shape"): {"logprobs": "none", "finish_reasons": 3},
    (VLLM, "empty_object"): {},
    (VLLM, "no_logprobs"): {"logprobs": None, "finish_reasons": ["stop"]},
    (SGLANG, "wrong_shape"): _SGLANG_WITHOUT_TOKENS,
    (SGLANG, "empty_object"): _SGLANG_WITHOUT_TOKENS,
    (SGLANG, "no_logprobs"): _SGLANG_WITHOUT_TOKENS,
    (COMPLETION, "wrong_shape"): {"choices": 3},
    (COMPLETION, "empty_object"): {},
    (COMPLETION, "no_logprobs"): {
        "choices": [
            {"text": "", "token_ids": [1], "logprobs": None, "finish_reason": "stop"}
        ]
    },
}
"""Replies that no client can use, by protocol and the fault that calls for them."""

ENDLESS_TEXT = "<answer>" + "on " * 1_000_000

Script = Callable[[int], str]
"""From the number of a request, from 0, to the fault that it suffers; "" for none."""


def listed(*faults: str) -> Script:
    """Return a script of the first requests; all later ones are served."""
    return lambda number: faults[number] if number < len(faults) else ""


def always(fault: str) -> Script:
    """Return a script in which every request suffers the same."""
    return lambda number: fault


def dice(seed: int, rate: float, names: Sequence[str]) -> Script:
    """Return a script in which each request suffers something with a chance."""

    def fault(number: int) -> str:
        rng = random.Random(f"{seed}/{number}")
        return rng.choice(names) if rng.random() < rate else ""

    return fault


class Faults:
    """The faults of one server by its script, which may be replaced at any time."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests = 0
        self.injected: Counter[str] = Counter()

    def next_fault(self) -> str:
        """Count a request; return the fault that it suffers, "" for none."""
        fault = self.script(self.requests)
        self.requests += 1
        if fault:
            self.injected[fault] += 1
        return fault


def cut_connection(request: web.Request) -> web.Response:
    """Cut the connection of a request; return what nobody will read."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


async def spoil(request: web.Request, fault: str) -> web.Response | None:
    """Return the reply of a fault that needs none of the truth, or None."""
    if fault.startswith("status_"):
        wait = {"Retry-After": str(RETRY_AFTER_S)} if fault == "status_429" else {}
        status = int(fault.removeprefix("status_"))
        return web.Response(status=status, text="scripted", headers=wait)
    if fault == "hang":
        await asyncio.sleep(LONGEST_HANG_S)
        return web.Response(status=504)
    if fault == "reset":
        return cut_connection(request)
    if fault == "not_json":
        return web.Response(text='{"logprobs": [[', content_type="application/json")
    if fault == "slow":
        await asyncio.sleep(SLOW_S)
    return None


async def send_half(request: web.Request, body: bytes) -> web.StreamResponse:
    """Send the first half of a body whose whole length was promised."""
    reply = web.StreamResponse(headers={"Content-Length": str(len(body))})
    reply.content_type = "application/json"
    await reply.prepare(request)
    await reply.write(body[: len(body) // 2])
    return cut_connection(request)


def bend(
    fault: str,
    protocol: InferenceProtocol,
    query: Query,
    answer: Answer,
    tokenizer: ChatTokenizer,
    rng: random.Random,
) -> Answer:
    made = _bend_completions(fault, answer.generations)
    if fault in ("nasty_text", "endless_text"):
        encoding = None if protocol is CHAT else tokenizer
        made = [_write_bad_text(fault, encoding, query.max_tokens, rng), *made[1:]]
    return dataclasses.replace(answer, generations=made)


def _bend_completions(fault: str, made: Sequence[Generation]) -> list[Generation]:
    first, *others = made
    if fault == "no_choices":
        return []
    if fault == "too_few":
        return others
    if fault == "too_many":
        return [*made, *made[:2]]
    if fault == "abort_all":
        return [_abort(generation) for generation in made]
    if fault == "abort_one":
        first = _abort(first)
    if fault == "null_logprob":
        first = _with_first_logprob(first, None)
    if fault == "nan_logprob":
        first = _with_first_logprob(first, math.nan)
    if fault == "bad_token":
        first = dataclasses.replace(first, token_ids=["word", *first.token_ids[1:]])
    if fault == "empty_one":
        first = dataclasses.replace(first, text="", token_ids=[], logprobs=[])
    return [first, *others]


def _abort(generation: Generation) -> Generation:
    return dataclasses.replace(
        generation,
        token_ids=generation.token_ids[:2],
        logprobs=generation.logprobs[:2],
        finish_reason="abort",
    )


def _with_first_logprob(generation: Generation, value: float | None) -> Generation:
    return dataclasses.replace(generation, logprobs=[value, *generation.logprobs[1:]])


def _write_bad_text(
    fault: str, tokenizer: ChatTokenizer | None, max_tokens: int, rng: random.Random
) -> Generation:
    """Write nasty text or one above the limit; without a tokenizer, of a chat."""
    is_nasty = fault == "nasty_text"
    if tokenizer is None:
        return Generation(LONE if is_nasty else ENDLESS_TEXT, [], [], "stop")
    text = rng.choice(NASTY) if is_nasty else "<think>" + "on and on " * max_tokens
    ids = tokenizer.encode(text)
    return Generation(text, ids, throw_logprobs(len(ids), rng), "stop")
