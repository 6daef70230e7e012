"""A small inference server that misbehaves by a script and counts what it served.

    python -m tests.support.inference_server --port 9004 --latency_ms 50

It speaks the protocol of a stock vLLM 0.32.0, with chats, and that of the vLLM server
of Atropos' example trainer where it is asked for; of a request it reads the prompt, `n`
and the token limit. Its model can add and find greatest common divisors.
"""

import argparse
import asyncio
import contextlib
import json
import time

import orjson
from aiohttp import web

from rg_env import shutdown
from rg_env.inference.probe import PROBE_TOKENS
from rg_env.installation import TOKENIZER_FOLDER
from tests.support import faults
from tests.support.text_models import Arithmetic, ChatTokenizer, build_prompt
from tests.support.web_apps import MAX_BODY_BYTES, serve_announced, serve_app

MODEL_NAME = "small-model"
CHAT_PATH = "/v1/chat/completions"
GENERATE_PATH = "/generate"
SERVES = faults.listed()


def shape_reply(body, prompt_ids, generations):
    """Return the reply to a request, for `orjson`."""
    choices = []
    for index, each in enumerate(generations):
        choice = {"index": index, "finish_reason": each.finish_reason}
        choice["logprobs"] = None
        # It may hold what is no Unicode, which orjson refuses.
        text = orjson.Fragment(json.dumps(each.text).encode())
        if "messages" in body:
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
        if body.get("return_token_ids"):
            choice["token_ids"] = each.token_ids
            choice["prompt_token_ids"] = prompt_ids
        if body.get("logprobs") is not None:
            choice["logprobs"] = {"token_logprobs": each.logprobs}
        choices.append(choice)
    return {"id": "small", "choices": choices, "model": body.get("model")}


def shape_generate_reply(generations):
    """Return a reply of the vLLM server of Atropos' example trainer."""
    pairs = [zip(each.token_ids, each.logprobs, strict=True) for each in generations]
    return {
        "text": [each.text for each in generations],
        "finish_reasons": [each.finish_reason for each in generations],
        "logprobs": [[[{token: number}] for token, number in row] for row in pairs],
    }


class InferenceServer:
    """The handlers of one server, whose script decides what goes wrong with a request.

    Attributes:
        arrivals: When each request for completions came, on the monotonic clock.
        probes: Requests so far for so few tokens as no item needs.
        completions: What was served of the others.
        runs: While it is not set everything hangs, health too, as in a stopped process.
    """

    def __init__(self, script=SERVES, latency_ms=0.0, model=None):
        self.model = model or Arithmetic()
        self.tokenizer = ChatTokenizer()
        self.latency_s = latency_ms / 1000
        self.script = script
        self.arrivals = []
        self.probes = self.completions = 0
        self.runs = asyncio.Event()
        self.runs.set()

    def begin(self, script):
        """Misbehave from now on, and count from now on."""
        self.script = script
        self.probes = 0
        self.arrivals.clear()

    async def page(self, request):
        """Answer what is always the same."""
        await self.runs.wait()
        # As vLLM says where a model lies.
        model = {"id": MODEL_NAME, "object": "model", "root": str(TOKENIZER_FOLDER)}
        pages = {"/v1/models": {"object": "list", "data": [model]}}
        return web.json_response(pages.get(request.path, {}))

    async def handle(self, request):
        """Answer a request for completions."""
        arrived = time.monotonic()
        body = orjson.loads(await request.read())
        is_probe = body["max_tokens"] <= PROBE_TOKENS
        fault = self.script(len(self.arrivals))
        self.arrivals.append(arrived)
        self.probes += is_probe
        await self.runs.wait()
        spoilt = await faults.spoil(request, fault)
        if spoilt is not None:
            return spoilt
        prompt = body["prompt"] if "prompt" in body else build_prompt(body["messages"])
        if isinstance(prompt, dict):
            prompt = prompt["prompt_token_ids"]
        if isinstance(prompt, str):
            ids = self.tokenizer.encode(prompt)
        else:
            ids, prompt = prompt, self.tokenizer.decode(prompt)
        made = await self.model.generate(prompt, body.get("n", 1), body["max_tokens"])
        if fault:
            tokenizer = None if request.path == CHAT_PATH else self.tokenizer
            made = faults.bend(fault, made, tokenizer, body["max_tokens"])
        if request.path == GENERATE_PATH:
            reply = shape_generate_reply(made)
        else:
            reply = shape_reply(body, ids, made)
        encoded = orjson.dumps(reply, option=orjson.OPT_NON_STR_KEYS)
        await asyncio.sleep(arrived + self.latency_s - time.monotonic())
        await self.runs.wait()
        if fault == "truncated":
            return await faults.send_half(request, encoded)
        self.completions += len(made) * (not is_probe)
        return web.Response(body=encoded, content_type="application/json")


def build_app(server, *, generates=False):
    """Build the application of a server, with the route `/generate` if it generates."""
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    pages = ("/health", "/v1/models")
    app.add_routes(
        [
            *(web.get(path, server.page) for path in pages),
            web.post("/v1/completions", server.handle),
            web.post(CHAT_PATH, server.handle),
        ]
    )
    if generates:
        app.add_routes([web.post(GENERATE_PATH, server.handle)])
    return app


@contextlib.asynccontextmanager
async def inference_server(script, **settings):
    """Serve in this process; yield the server, with its `url`."""
    server = InferenceServer(script, **settings)
    async with serve_app(build_app(server)) as server.url:
        yield server


def run(port=0, *, generates=False, **settings):
    """Serve as all that this process does, until a signal comes."""
    app = build_app(InferenceServer(**settings), generates=generates)
    shutdown.run(serve_announced(app, "inference server", port))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency_ms", type=float, default=0.0)
    run(**vars(parser.parse_args()))
