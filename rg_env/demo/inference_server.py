"""A simulated inference server: any simulated model behind any protocol, over HTTP.

It speaks to the env as a vLLM, SGLang or OpenAI server does (see
`rg_env.demo.protocols`); the host and the env cannot tell, the counts at
`GET /stats` can. Malformed requests get status 400 and a JSON object that says what was
expected. It can be slow and it can misbehave, both as asked.

What it is not: an inference server. It loads no model, keeps no context limit of its
own and checks no key.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from rg_env.demo import faults
from rg_env.demo.answer_key import AnswerKey
from rg_env.demo.chat_tokenizer import ChatTokenizer
from rg_env.demo.child_process import announce, end_with_parent
from rg_env.demo.generation import Generation
from rg_env.demo.model import TRIAL_TOKENS, Model, TextModel
from rg_env.demo.policy import KeyEntry
from rg_env.demo.policy_model import PolicyModel
from rg_env.demo.protocols.openai import CHAT, COMPLETION
from rg_env.demo.protocols.protocol import (
    Answer,
    Ask,
    BadRequest,
    Body,
    InferenceProtocol,
)
from rg_env.demo.protocols.sglang import SGLANG
from rg_env.demo.protocols.vllm import VLLM
from tests.support.fixed_length_model import FixedLengthModel
from tests.support.request_counts import RequestCounts
from tests.support.text_models import Arithmetic, Hostile
from tests.support.told_answers import ToldAnswers

MAX_BODY_BYTES = 64 * 1024**2
DEFAULT_MAX_TOKENS = 1024
MODEL_NAME = "simulated-policy"
VERSION = "0.0.0+simulated"
TELL = "/simulation/tell"
"""Takes what the simulated policy has to know of a question, before that is asked."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Pace:
    """How long an answer takes, counted from the arrival of its request.

    Attributes:
        latency_ms: Wait for every answer, in milliseconds, at least 0.
        jitter: It varies by this share, evenly, to both sides; in [0, 1].
        token_latency_ms: Further wait for each token of the longest completion.
    """

    latency_ms: float = 0.0
    jitter: float = 0.0
    token_latency_ms: float = 0.0

    def duration_s(self, longest_tokens: int, rng: random.Random) -> float:
        """Return how long an answer takes whose longest completion is that long."""
        spread = 1 + self.jitter * rng.uniform(-1, 1)
        latency_ms = self.latency_ms * spread + longest_tokens * self.token_latency_ms
        return latency_ms / 1000


def choose_native(body: Body) -> InferenceProtocol:
    """Tell the two native `/generate` protocols apart.

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


class InferenceServer:
    """The handlers of one server.

    Args:
        model: What plays the model.
        pace: How long an answer takes.
        script: Decides what goes wrong with each request; None for nothing.
        seed: Decides jitter and nasty texts.

    Attributes:
        counts: What was asked and answered.
        faults: What went wrong on purpose.
        arrivals: When each request for completions came, on the monotonic clock.
        trials: Requests so far for so few tokens as no item asks for.
        runs: While it is not set everything hangs, health too, as in a stopped process.
    """

    def __init__(
        self,
        model: Model,
        pace: Pace | None = None,
        script: faults.Script | None = None,
        seed: int = 0,
    ) -> None:
        self._model = model
        self._pace = pace or Pace()
        self._rng = random.Random(seed)
        self._tokenizer = ChatTokenizer()
        self.counts = RequestCounts()
        self.faults = faults.Faults(script or faults.listed())
        self.arrivals: list[float] = []
        self.trials = 0
        self.runs = asyncio.Event()
        self.runs.set()

    # -- pages -------------------------------------------------------------------------

    async def health(self, request: web.Request) -> web.Response:
        """Say that all is well."""
        await self.runs.wait()
        return web.json_response({"status": "ok", "simulated": True})

    async def models(self, request: web.Request) -> web.Response:
        """Name the one model."""
        model = {"id": MODEL_NAME, "object": "model"}
        return web.json_response({"object": "list", "data": [model]})

    async def version(self, request: web.Request) -> web.Response:
        """Name the version, as vLLM does."""
        return web.json_response({"version": VERSION})

    async def stats(self, request: web.Request) -> web.Response:
        """Return everything that is counted."""
        injected = {"injected": self.faults.injected}
        counted = self.counts.snapshot() | dict(self._model.counts()) | injected
        return web.json_response({"simulated": True, **counted})

    async def hold(self, request: web.Request) -> web.Response:
        """Answer nothing any more, for ever; return what is counted."""
        self.runs.clear()
        return await self.stats(request)

    async def generate(self, request: web.Request) -> web.StreamResponse:
        """Answer as vLLM, or as SGLang if the request is one for SGLang."""
        return await self._handle(request, None)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Complete a text as an OpenAI server."""
        return await self._handle(request, COMPLETION)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answer messages as an OpenAI server."""
        return await self._handle(request, CHAT)

    # -- one request -------------------------------------------------------------------

    async def _handle(
        self, request: web.Request, protocol: InferenceProtocol | None
    ) -> web.StreamResponse:
        arrived = time.monotonic()
        self.counts.move(+1)
        asks: Sequence[Ask] = []
        try:
            body = await read_body(request)
            protocol = protocol or choose_native(body)
            asks = protocol.read(body, DEFAULT_MAX_TOKENS)
            return await self._serve(request, protocol, body, asks, arrived)
        except asyncio.CancelledError:
            if self.runs.is_set():
                self.counts.record_departure(sum(ask.n for ask in asks))
            raise
        finally:
            self.counts.move(-1)

    async def _serve(
        self,
        request: web.Request,
        protocol: InferenceProtocol,
        body: Body,
        asks: Sequence[Ask],
        arrived: float,
    ) -> web.StreamResponse:
        self.arrivals.append(arrived)
        is_trial = all(ask.max_tokens <= TRIAL_TOKENS for ask in asks)
        self.trials += is_trial
        await self.runs.wait()
        fault = self.faults.next_fault()
        spoilt = await faults.spoil(request, fault)
        if spoilt is not None:
            return spoilt
        answers = [await self._answer(ask) for ask in asks]
        made = [generation for answer in answers for generation in answer.generations]
        if fault:
            answers[0] = self._bend(fault, protocol, asks[0], answers[0])
        if fault in protocol.broken:
            encoded = orjson.dumps(protocol.broken[fault])
        else:
            encoded = orjson.dumps(protocol.shape(body, answers))
        longest = max(generation.num_tokens for generation in made)
        left_s = arrived + self._pace.duration_s(longest, self._rng) - time.monotonic()
        if left_s > 0:
            await asyncio.sleep(left_s)
        await self.runs.wait()
        if fault == "truncated":
            return await faults.send_half(request, encoded)
        if not is_trial:
            given = [g for answer in answers for g in answer.generations]
            self.counts.record_reply(given)
        return web.Response(body=encoded, content_type="application/json")

    async def _answer(self, ask: Ask) -> Answer:
        if isinstance(ask.prompt, str):
            text, ids = ask.prompt, self._tokenizer.encode(ask.prompt)
        else:
            ids = ask.prompt
            try:
                text = self._tokenizer.decode(ids)
            except ValueError as error:
                raise BadRequest(str(error)) from error
        made = await self._model.generate(text, ask.n, ask.max_tokens)
        return Answer(text, ids, made)

    def _bend(
        self, fault: str, protocol: InferenceProtocol, ask: Ask, answer: Answer
    ) -> Answer:
        """Return an answer with what a fault changes in it."""
        made: Sequence[Generation] = faults.bend(fault, answer.generations)
        if fault in ("nasty_text", "endless_text"):
            tokenizer = self._tokenizer if protocol.sends_tokens else None
            bad = faults.write_bad_text(fault, tokenizer, ask.max_tokens, self._rng)
            made = [bad, *made[1:]]
        return Answer(answer.prompt, answer.prompt_ids, made)


async def read_body(request: web.Request) -> Body:
    """Read a request's JSON object.

    Raises:
        BadRequest: It is none.
    """
    try:
        body: Any = orjson.loads(await request.read())
    except json.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body is not a JSON object")
    return body


@web.middleware
async def explain_bad_requests(
    request: web.Request, handler: Handler
) -> web.StreamResponse:
    """Answer a bad request with status 400 and what was expected."""
    try:
        return await handler(request)
    except BadRequest as error:
        details = {"message": str(error), "type": "invalid_request_error"}
        return web.json_response({"error": details}, status=400)


def build_app(server: InferenceServer) -> web.Application:
    """Build the application of a simulated inference server."""
    app = web.Application(
        middlewares=[explain_bad_requests], client_max_size=MAX_BODY_BYTES
    )
    app.add_routes(
        [
            web.get("/health", server.health),
            web.get("/stats", server.stats),
            web.post("/simulation/hold", server.hold),
            web.get("/v1/models", server.models),
            web.get("/version", server.version),
            web.post("/generate", server.generate),
            web.post("/v1/completions", server.complete),
            web.post("/v1/chat/completions", server.chat),
        ]
    )
    return app


@contextlib.asynccontextmanager
async def serve_app(
    app: web.Application,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    notices_departures: bool = False,
) -> AsyncIterator[str]:
    """Serve an application while the context lasts.

    Args:
        app: What to serve.
        host: Address to listen on.
        port: Port to listen on; 0 for a free one.
        notices_departures: Whether a handler is cancelled when its client goes away.

    Yields:
        The base URL, without a slash at its end.

    Raises:
        OSError: The address cannot be listened on.
    """
    runner = web.AppRunner(
        app,
        access_log=None,
        # A waiting answer must not hold up the end.
        shutdown_timeout=1.0,
        handler_cancellation=notices_departures,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        name = f"[{host}]" if ":" in host else host
        yield f"http://{name}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def catch_signals() -> asyncio.Event:
    """Return what SIGINT and SIGTERM set instead of ending this process."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    return stopped


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the program."""
    parser = argparse.ArgumentParser(
        prog="python -m rg_env.demo.inference_server",
        description="A simulated inference server for benchmarks, with a model that can"
        " add and find greatest common divisors if no other is chosen. It ends when its"
        " standard input closes.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--port", type=int, default=0, help="0 for a free one")
    add("--tokens", type=int, help="a model whose completions all have this length")
    add("--tell", type=Path, help="its Unix socket for answers to questions")
    add("--policy", action="store_true", help=f"a model that is told at {TELL}")
    add("--hostile", metavar="FOLDER", help="a model that writes hostile texts")
    add("--latency_ms", type=float, default=0.0, help="wait before every answer")
    add("--jitter", type=float, default=0.0, help="it varies by this share")
    add("--rate", type=float, default=0.0, help="of requests that suffer a fault")
    add("--seed", type=int, default=0, help="decides faults and completions")
    return parser


async def _serve(options: argparse.Namespace) -> None:
    told = ToldAnswers()
    model: Model = TextModel(Arithmetic(options.seed), options.seed)
    if options.hostile is not None:
        model = TextModel(Hostile(options.hostile, options.seed), options.seed)
    elif options.tokens is not None:
        model = FixedLengthModel(options.tokens, told)
    key = AnswerKey()
    if options.policy:
        model = PolicyModel(key)
    if options.tell is not None:
        await told.listen(options.tell)
    server = InferenceServer(
        model,
        Pace(options.latency_ms, options.jitter),
        faults.dice(options.seed, options.rate, faults.SERVER_FAULTS),
        options.seed,
    )
    stopped = catch_signals()
    app = build_app(server)

    async def take(request: web.Request) -> web.Response:
        key.remember(KeyEntry(**await request.json()))
        return web.Response()

    app.router.add_post(TELL, take)
    async with serve_app(app, port=options.port, notices_departures=True) as url:
        announce(url)
        await stopped.wait()


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until the standard input closes or a signal comes."""
    options = build_parser().parse_args(argv)
    end_with_parent()
    asyncio.run(_serve(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
