"""A simulated inference server that misbehaves by a script and counts what it served.

Its model can add and find greatest common divisors.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

import orjson
from aiohttp import web

from rg_env.demo.inference_server import (
    CHAT_PATH,
    Body,
    InferenceServer,
    Query,
    build_app,
    serve_app,
    shape_reply,
)
from rg_env.demo.model import PROBE_TOKENS
from tests.support import faults
from tests.support.text_models import Arithmetic, TextModel


class FaultyServer(InferenceServer):
    """The handlers of one server, whose script decides what goes wrong with a request.

    Attributes:
        arrivals: When each request for completions came, on the monotonic clock.
        probes: Requests so far for so few tokens as no item needs.
        completions: What was served of the others.
        runs: While it is not set everything hangs, health too, as in a stopped process.
    """

    def __init__(self, script: faults.Script, latency_ms: float = 0.0) -> None:
        super().__init__(TextModel(Arithmetic()), latency_ms)
        self.faults = faults.Faults(script)
        self.arrivals: list[float] = []
        self.probes = self.completions = 0
        self.runs = asyncio.Event()
        self.runs.set()

    def begin(self, script: faults.Script) -> None:
        """Misbehave from now on, and count from now on."""
        self.faults, self.probes = faults.Faults(script), 0
        self.arrivals.clear()

    async def page(self, request: web.Request) -> web.Response:
        await self.runs.wait()
        return await super().page(request)

    async def serve(
        self, request: web.Request, body: Body, query: Query
    ) -> web.StreamResponse:
        arrived = time.monotonic()
        self.arrivals.append(arrived)
        self.probes += query.max_tokens <= PROBE_TOKENS
        await self.runs.wait()
        fault = self.faults.next_fault()
        spoilt = await faults.spoil(request, fault)
        if spoilt is not None:
            return spoilt
        prompt_ids, made = await self.answer(query)
        tokenizer = None if request.path == CHAT_PATH else self.tokenizer
        made = faults.bend(fault, made, tokenizer, query.max_tokens)
        encoded = orjson.dumps(shape_reply(body, prompt_ids, made))
        await asyncio.sleep(arrived + self.latency_s - time.monotonic())
        await self.runs.wait()
        if fault == "truncated":
            return await faults.send_half(request, encoded)
        self.completions += len(made) * (query.max_tokens > PROBE_TOKENS)
        return web.Response(body=encoded, content_type="application/json")


@contextlib.asynccontextmanager
async def faulty_server(script: faults.Script, **settings):
    """Serve in this process; yield the server, with its `url`."""
    server = FaultyServer(script, **settings)
    async with serve_app(build_app(server), notices_departures=True) as server.url:
        yield server
