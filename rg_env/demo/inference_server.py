"""A simulated inference server: any simulated model behind any protocol, over HTTP.

It speaks to the env as a vLLM, SGLang or OpenAI server does (see
`rg_env.demo.protocols`); the host and the env cannot tell, the counts at `GET /stats`
can. Malformed requests get status 400 and a JSON object that says what was expected.
It keeps no context limit of its own and checks no key.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

import orjson
from aiohttp import web

from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER, ChatTokenizer
from rg_env.demo.http_app import MAX_BODY_BYTES, explain_bad_requests, read_body
from rg_env.demo.model import PROBE_TOKENS, Model
from rg_env.demo.protocols import (
    CHAT,
    COMPLETION,
    Answer,
    BadRequestError,
    Body,
    InferenceProtocol,
    Query,
    choose_native,
    read_query,
)

DEFAULT_MAX_TOKENS = 1024
MODEL_NAME = "simulated-policy"
VERSION = "0.0.0+simulated"


class InferenceServer:
    """The handlers of one server.

    Args:
        model: What plays the model.
        latency_ms: How long every answer takes, counted from its request.
    """

    def __init__(self, model: Model, latency_ms: float = 0.0) -> None:
        self.model = model
        self.tokenizer = ChatTokenizer()
        self.latency_s = latency_ms / 1000
        self._requests = self._completions = 0

    async def health(self, request: web.Request) -> web.Response:
        """Say that all is well."""
        return web.json_response({"status": "ok", "simulated": True})

    async def models(self, request: web.Request) -> web.Response:
        """Name the one model."""
        root = str(TOKENIZER_FOLDER)  # as vLLM says where a model lies
        model = {"id": MODEL_NAME, "object": "model", "root": root}
        return web.json_response({"object": "list", "data": [model]})

    async def version(self, request: web.Request) -> web.Response:
        """Name the version, as vLLM does."""
        return web.json_response({"version": VERSION})

    async def stats(self, request: web.Request) -> web.Response:
        """Return everything that is counted."""
        return web.json_response({"simulated": True, **self.counts()})

    def counts(self) -> dict[str, Any]:
        """Return the requests that were answered, and what the model counts."""
        served = {"requests": self._requests, "completions": self._completions}
        return served | dict(self.model.counts())

    async def handle(
        self, request: web.Request, protocol: InferenceProtocol | None = None
    ) -> web.StreamResponse:
        """Read a request, of a native protocol if none is given, and answer it."""
        body = await read_body(request)
        protocol = protocol or choose_native(body)
        query = read_query(body, DEFAULT_MAX_TOKENS)
        return await self.serve(request, protocol, body, query)

    async def serve(
        self,
        request: web.Request,
        protocol: InferenceProtocol,
        body: Body,
        query: Query,
    ) -> web.StreamResponse:
        """Answer a query."""
        arrived = time.monotonic()
        answer = await self.answer(query)
        encoded = orjson.dumps(protocol(body, answer))
        await asyncio.sleep(arrived + self.latency_s - time.monotonic())
        if query.max_tokens > PROBE_TOKENS:
            self._requests += 1
            self._completions += len(answer.generations)
        return web.Response(body=encoded, content_type="application/json")

    async def answer(self, query: Query) -> Answer:
        """Have the model answer one prompt."""
        if isinstance(query.prompt, str):
            text, ids = query.prompt, self.tokenizer.encode(query.prompt)
        else:
            ids = query.prompt
            try:
                text = self.tokenizer.decode(ids)
            except ValueError as error:
                raise BadRequestError(str(error)) from error
        generations = await self.model.generate(text, query.n, query.max_tokens)
        return Answer(text, ids, generations)


def build_app(server: InferenceServer) -> web.Application:
    """Build the application of a simulated inference server."""
    app = web.Application(
        middlewares=[explain_bad_requests], client_max_size=MAX_BODY_BYTES
    )
    app.add_routes(
        [
            web.get("/health", server.health),
            web.get("/stats", server.stats),
            web.get("/v1/models", server.models),
            web.get("/version", server.version),
            web.post("/generate", server.handle),
            web.post("/v1/completions", partial(server.handle, protocol=COMPLETION)),
            web.post("/v1/chat/completions", partial(server.handle, protocol=CHAT)),
        ]
    )
    return app
