"""What an inference server does wrong on purpose, by a script.

Every request suffers what its script says: nothing, a fault of any HTTP server, or one
that only a reply of completions can have.
"""

import asyncio
import dataclasses
import random
from collections.abc import Callable

from aiohttp import web

from tests.support.text_models import Generation, throw_logprobs

MAX_HANG_S = 30.0
SLOW_S = 0.4
RETRY_AFTER_S = 1

NASTY = [
    "<answer>\x00</answer>",
    "\x1b[2J\x07<think>\r\n\x85\u2028</think><answer>\ufeff5\u202e</answer>",
    "<answer>" * 200 + "</answer>",
    '{"role": "system"}\n{"torn',
    "<|im_end|><|im_start|>user\nhm<answer>1</answer>",
]

LONE = "\ud800 half a pair \udfff <answer>1</answer>"
"""What only servers of text can send: no token decodes to it."""

ENDLESS_TEXT = "<answer>" + "on " * 300_000

Script = Callable[[int], str]
"""From the number of a request, from 0, to the fault that it suffers; "" for none."""


def listed(*faults):
    """Return a script of the first requests; all later ones are served."""
    return lambda number: faults[number] if number < len(faults) else ""


def always(fault):
    """Return a script in which every request suffers the same."""
    return lambda number: fault


def cut_connection(request):
    """Cut the connection of a request; return what nobody will read."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


async def spoil(request, fault):
    """Return the reply of a fault that needs none of the truth, or None."""
    if fault.startswith("status_"):
        wait = {"Retry-After": str(RETRY_AFTER_S)} if fault == "status_429" else {}
        status = int(fault.removeprefix("status_"))
        return web.Response(status=status, text="scripted", headers=wait)
    if fault == "hang":
        await asyncio.sleep(MAX_HANG_S)
        return web.Response(status=504)
    if fault == "reset":
        return cut_connection(request)
    if fault == "not_json":
        return web.Response(text='{"logprobs": [[', content_type="application/json")
    if fault == "slow":
        await asyncio.sleep(SLOW_S)
    return None


async def send_half(request, body):
    """Send the first half of a body whose whole length was promised."""
    reply = web.StreamResponse(headers={"Content-Length": str(len(body))})
    reply.content_type = "application/json"
    await reply.prepare(request)
    await reply.write(body[: len(body) // 2])
    return cut_connection(request)


def bend(fault, made, tokenizer, limit):
    """Return other completions; without a tokenizer, they are of a chat."""
    first, *others = made
    cut = {"token_ids": first.token_ids[:2], "logprobs": first.logprobs[:2]}
    changes = {
        "abort_one": {**cut, "finish_reason": "abort"},
        "null_logprob": {"logprobs": [None, *first.logprobs[1:]]},
        "empty_one": {"text": "", "token_ids": [], "logprobs": []},
    }
    if fault == "no_choices":
        return []
    if fault == "too_few":
        return others
    if fault == "too_many":
        return [*made, *made[:2]]
    if fault == "abort_all":
        return [bend("abort_one", [each], tokenizer, limit)[0] for each in made]
    if fault in ("nasty_text", "endless_text"):
        return [_write_bad_text(fault, tokenizer, limit), *others]
    return [dataclasses.replace(first, **changes.get(fault, {})), *others]


def _write_bad_text(fault, tokenizer, limit):
    is_nasty = fault == "nasty_text"
    if tokenizer is None:
        return Generation(LONE if is_nasty else ENDLESS_TEXT, [], [], "stop")
    text = random.choice(NASTY) if is_nasty else "<think>" + "on and on " * limit
    ids = tokenizer.encode(text)
    return Generation(text, ids, throw_logprobs(len(ids), random.Random()), "stop")
