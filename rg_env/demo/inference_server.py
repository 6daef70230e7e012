"""A simulated inference server: any simulated model behind vLLM's protocol, over HTTP.

    POST /v1/completions        {"prompt": "..", "return_token_ids": true, ...}
    POST /v1/chat/completions   {"messages": [..], ...}

Only the prompt, `n` and the token limit are read; everything else in a body is accepted
and has no effect. Malformed requests get status 400 and what was expected. Replies have
the shape of a stock vLLM 0.32.0; what was answered is counted at `GET /stats`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Annotated, Any

import msgspec
import orjson
from aiohttp import web

from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER, ChatTokenizer, build_prompt
from rg_env.demo.child_process import announce
from rg_env.demo.model import PROBE_TOKENS, Generation

DEFAULT_MAX_TOKENS = 1024
MODEL_NAME = "simulated-policy"
CHAT_PATH = "/v1/chat/completions"
MAX_BODY_BYTES = 64 * 1024**2

Body = dict[str, Any]


# -- requests --------------------------------------------------------------------------


class BadRequestError(ValueError):
    """A request that cannot be answered; its text says what was expected."""


class _Message(msgspec.Struct):
    role: str
    content: str


class Query(msgspec.Struct):
    """One prompt, as text or tokens, and how many completions it gets, how long."""

    prompt: str | Annotated[list[int], msgspec.Meta(min_length=1)] = ""
    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)] | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 1
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = DEFAULT_MAX_TOKENS


async def read_body(request: web.Request) -> Body:
    """Read a request's JSON object; raises `BadRequestError` if it is none."""
    try:
        body: Any = orjson.loads(await request.read())
    except json.JSONDecodeError as error:  # orjson's is a subclass of this one
        raise BadRequestError(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequestError("the body is not a JSON object")
    return body


def read_query(body: Body) -> Query:
    """Read the body of a request; raises `BadRequestError`."""
    try:
        query = msgspec.convert(body, Query)
    except msgspec.ValidationError as error:
        raise BadRequestError(str(error).replace("`$.", "`")) from error
    if query.messages:
        query.prompt = build_prompt([(m.role, m.content) for m in query.messages])
    if not query.prompt:
        raise BadRequestError("expected `prompt` or `messages`")
    return query


# -- replies ---------------------------------------------------------------------------


def shape_reply(
    body: Body, prompt_ids: Sequence[int], generations: Sequence[Generation]
) -> Body:
    """Return the reply to a request, for `orjson`."""
    choices: list[Body] = []
    for index, each in enumerate(generations):
        choice: Body = {"index": index, "finish_reason": each.finish_reason}
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
            if body.get("return_tokens_as_token_ids"):
                named = [f"token_id:{token}" for token in each.token_ids]
                choice["logprobs"]["tokens"] = named
        choices.append(choice)
    kind = "chat.completion" if "messages" in body else "text_completion"
    # The time would be the one thing that differs between two equal runs.
    reply = {"id": "simulated", "object": kind, "created": 0, "choices": choices}
    return {**reply, "model": body.get("model") or "simulated"}


# -- the server ------------------------------------------------------------------------


class InferenceServer:
    """The handlers of one server, whose answers each take a time from their request."""

    def __init__(self, model: Any, latency_ms: float = 0.0) -> None:
        self.model = model
        self.tokenizer = ChatTokenizer()
        self.latency_s = latency_ms / 1000
        self._requests = self._completions = 0

    async def page(self, request: web.Request) -> web.Response:
        """Answer what is always the same."""
        # As vLLM says where a model lies.
        model = {"id": MODEL_NAME, "object": "model", "root": str(TOKENIZER_FOLDER)}
        pages = {
            "/v1/models": {"object": "list", "data": [model]},
            "/version": {"version": "0.0.0+simulated"},
        }
        return web.json_response(pages.get(request.path, {}))

    async def stats(self, request: web.Request) -> web.Response:
        """Return what was answered, and what the model counts."""
        served = {"requests": self._requests, "completions": self._completions}
        return web.json_response({**served, **self.model.counts()})

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Read a request and answer it."""
        body = await read_body(request)
        return await self.serve(request, body, read_query(body))

    async def serve(
        self, request: web.Request, body: Body, query: Query
    ) -> web.StreamResponse:
        """Answer a query."""
        arrived = time.monotonic()
        prompt_ids, generations = await self.answer(query)
        encoded = orjson.dumps(shape_reply(body, prompt_ids, generations))
        await asyncio.sleep(arrived + self.latency_s - time.monotonic())
        if query.max_tokens > PROBE_TOKENS:
            self._requests += 1
            self._completions += len(generations)
        return web.Response(body=encoded, content_type="application/json")

    async def answer(self, query: Query) -> tuple[list[int], Sequence[Generation]]:
        """Have the model answer one prompt; return the prompt's tokens as well."""
        if isinstance(query.prompt, str):
            text, ids = query.prompt, self.tokenizer.encode(query.prompt)
        else:
            ids = query.prompt
            try:
                text = self.tokenizer.decode(ids)
            except ValueError as error:
                raise BadRequestError(str(error)) from error
        return ids, await self.model.generate(text, query.n, query.max_tokens)


def build_app(server: InferenceServer) -> web.Application:
    """Build the application of a simulated inference server."""
    app = web.Application(
        middlewares=[explain_bad_requests], client_max_size=MAX_BODY_BYTES
    )
    pages = ("/health", "/v1/models", "/version")
    app.add_routes(
        [
            *(web.get(path, server.page) for path in pages),
            web.get("/stats", server.stats),
            web.post("/v1/completions", server.handle),
            web.post(CHAT_PATH, server.handle),
        ]
    )
    return app


# -- over HTTP -------------------------------------------------------------------------


@web.middleware
async def explain_bad_requests(
    request: web.Request,
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> web.StreamResponse:
    """Answer a bad request with status 400 and what was expected."""
    try:
        return await handler(request)
    except BadRequestError as error:
        details = {"message": str(error), "type": "invalid_request_error"}
        return web.json_response({"error": details}, status=400)


@contextlib.asynccontextmanager
async def serve_app(
    app: web.Application,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    notices_departures: bool = False,
) -> AsyncIterator[str]:
    """Serve an application while the context lasts; yields the base URL."""
    runner = web.AppRunner(
        app,
        access_log=None,
        shutdown_timeout=1.0,  # a waiting answer must not hold up the end
        handler_cancellation=notices_departures,  # when its client goes away
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        name = f"[{host}]" if ":" in host else host
        yield f"http://{name}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def serve_announced(
    app: web.Application, what: str, port: int, host: str = "127.0.0.1"
) -> None:
    """Serve an application, and say where, until this is cancelled."""
    async with serve_app(app, host, port, notices_departures=True) as url:
        announce(url, what)
        await asyncio.Event().wait()
