"""A simulated inference server that misbehaves by a script and counts what it served.

    python -m tests.support.inference_server --rate 0.1 --latency_ms 20

Its model can add and find greatest common divisors if no other is chosen. The program
ends when its standard input closes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import os
import random
import sys
import time
from collections.abc import Sequence
from typing import Any

import orjson
from aiohttp import web

from rg_env.demo.child_process import end_with_parent
from rg_env.demo.http_app import serve_app, serve_as_child
from rg_env.demo.inference_server import InferenceServer, build_app
from rg_env.demo.model import PROBE_TOKENS, Generation, Model
from rg_env.demo.protocols import Body, InferenceProtocol, Query
from tests.support import faults
from tests.support.text_models import Arithmetic, TextModel


@dataclasses.dataclass
class RequestCounts:
    """Counts since the server began; `idle_s` is that without a request in flight."""

    in_flight: int = 0
    idle_s: float = 0.0
    requests: int = 0
    completions: int = 0
    tokens: int = 0
    cancelled: int = 0
    cancelled_completions: int = 0
    _since: float = dataclasses.field(default_factory=time.monotonic)

    def move(self, change: int) -> None:
        """Let requests come (+1) or go (-1)."""
        now = time.monotonic()
        passed_s, self._since = now - self._since, now
        self.idle_s += passed_s * (self.in_flight == 0)
        self.in_flight += change

    def record_reply(self, made: Sequence[Generation]) -> None:
        self.requests += 1
        self.completions += len(made)
        self.tokens += sum(generation.num_tokens for generation in made)

    def record_departure(self, completions: int) -> None:
        """Count a client that went away before it was answered."""
        self.cancelled += 1
        self.cancelled_completions += completions

    def snapshot(self) -> dict[str, Any]:
        """Return all counts, this process, and the time of the monotonic clock."""
        self.move(0)
        values = dataclasses.asdict(self)
        return {**values, "t": values.pop("_since"), "pid": os.getpid()}


class FaultyServer(InferenceServer):
    """The handlers of one server, whose script decides what goes wrong with a request.

    Attributes:
        arrivals: When each request for completions came, on the monotonic clock.
        probes: Requests so far for so few tokens as no item needs.
        runs: While it is not set everything hangs, health too, as in a stopped process.
    """

    def __init__(
        self,
        script: faults.Script,
        model: Model | None = None,
        latency_ms: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__(model or TextModel(Arithmetic(seed), seed), latency_ms)
        self._rng = random.Random(seed)
        self.served = RequestCounts()
        self.faults = faults.Faults(script)
        self.arrivals: list[float] = []
        self.probes = 0
        self.runs = asyncio.Event()
        self.runs.set()

    def begin(self, script: faults.Script) -> None:
        """Misbehave from now on, and count from now on."""
        self.faults.script, self.faults.requests, self.probes = script, 0, 0
        self.arrivals.clear()

    def counts(self):
        injected = {"injected": self.faults.injected}
        return self.served.snapshot() | dict(self.model.counts()) | injected

    async def health(self, request: web.Request) -> web.Response:
        await self.runs.wait()
        return await super().health(request)

    async def handle(
        self, request: web.Request, protocol: InferenceProtocol | None = None
    ) -> web.StreamResponse:
        self.served.move(+1)
        try:
            return await super().handle(request, protocol)
        finally:
            self.served.move(-1)

    async def serve(
        self,
        request: web.Request,
        protocol: InferenceProtocol,
        body: Body,
        query: Query,
    ) -> web.StreamResponse:
        self.arrivals.append(time.monotonic())
        self.probes += query.max_tokens <= PROBE_TOKENS
        try:
            return await self._serve(request, protocol, body, query)
        except asyncio.CancelledError:
            if self.runs.is_set():
                self.served.record_departure(query.n)
            raise

    async def _serve(
        self,
        request: web.Request,
        protocol: InferenceProtocol,
        body: Body,
        query: Query,
    ) -> web.StreamResponse:
        arrived = time.monotonic()
        await self.runs.wait()
        fault = self.faults.next_fault()
        spoilt = await faults.spoil(request, fault)
        if spoilt is not None:
            return spoilt
        answer = await self.answer(query)
        if fault:
            answer = faults.bend(
                fault, protocol, query, answer, self.tokenizer, self._rng
            )
        broken = faults.BROKEN.get((protocol, fault))
        shaped = protocol(body, answer) if broken is None else broken
        encoded = orjson.dumps(shaped)
        await asyncio.sleep(arrived + self.latency_s - time.monotonic())
        await self.runs.wait()
        if fault == "truncated":
            return await faults.send_half(request, encoded)
        if query.max_tokens > PROBE_TOKENS:
            self.served.record_reply(answer.generations)
        return web.Response(body=encoded, content_type="application/json")

    def app(self) -> web.Application:
        return build_app(self)


@contextlib.asynccontextmanager
async def faulty_server(script: faults.Script, **settings):
    """Serve in this process; yield the server, with its `url`."""
    server = FaultyServer(script, **settings)
    async with serve_app(server.app()) as server.url:
        yield server


async def _serve(options: argparse.Namespace) -> None:
    script = faults.dice(options.seed, options.rate, faults.SERVER_FAULTS)
    server = FaultyServer(script, None, options.latency_ms, options.seed)
    await serve_as_child(server.app(), options.port, "simulated inference server")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.inference_server",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--port", type=int, default=0, help="0 for a free one")
    add("--latency_ms", type=float, default=0.0, help="wait before every answer")
    add("--rate", type=float, default=0.0, help="of requests that suffer a fault")
    add("--seed", type=int, default=0, help="decides faults and completions")
    options = parser.parse_args(argv)
    end_with_parent()
    asyncio.run(_serve(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
