"""Applications over HTTP: JSON objects come in, a bad request is answered in words.

What the simulated server and the small one of `examples/train_small` have in common. It
knows no model and no task.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from rg_env.demo.child_process import announce
from rg_env.demo.protocols import BadRequestError, Body

MAX_BODY_BYTES = 64 * 1024**2

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def read_body(request: web.Request) -> Body:
    """Read a request's JSON object; raises `BadRequestError` if it is none."""
    try:
        body: Any = orjson.loads(await request.read())
    except json.JSONDecodeError as error:  # orjson's is a subclass of this one
        raise BadRequestError(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequestError("the body is not a JSON object")
    return body


@web.middleware
async def explain_bad_requests(
    request: web.Request, handler: Handler
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
    """Serve an application while the context lasts; yields the base URL.

    With `notices_departures`, a handler is cancelled when its client goes away.
    """
    runner = web.AppRunner(
        app,
        access_log=None,
        shutdown_timeout=1.0,  # a waiting answer must not hold up the end
        handler_cancellation=notices_departures,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        name = f"[{host}]" if ":" in host else host
        yield f"http://{name}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def serve_as_child(
    app: web.Application, port: int, what: str, *, notices_departures: bool = True
) -> None:
    """Serve an application, announced to the parent, until SIGINT or SIGTERM."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    serving = serve_app(app, port=port, notices_departures=notices_departures)
    async with serving as url:
        announce(url, what)
        await stopped.wait()
