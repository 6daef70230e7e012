"""What the clients of an application may send, hold and wait for.

A request reaches the application with its whole body. Its client gets an error with a
reason if the body is too large or too slow, or if the answer takes too long. If the
client disconnects, the work for its request ends.
"""

from __future__ import annotations

import asyncio
import time

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rg_env.workers.worker_pool import default_pool_size

MAX_BODY_BYTES = 16 * 2**20
WORKED_ON = 2 * default_pool_size()
"""The other requests wait, so that under load some are answered in time, not none."""
BODY_WITHIN_S = 30.0
ANSWER_WITHIN_S = 120.0

AGAIN = {"Retry-After": "1"}
HEALTH = "/health"


class RequestLimits:
    """An ASGI application that limits the requests to another one.

    WebSockets are passed on as they are, and so is a question for its health.

    Args:
        inner: The application.
    """

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner
        self._places = asyncio.Semaphore(WORKED_ON)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"] == HEALTH:
            await self._inner(scope, receive, send)
            return
        has_begun = False

        async def sending(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        body = bytearray()
        try:
            if await self._read(scope, receive, body):
                await self._answer(scope, receive, sending, bytes(body))
            return
        except HTTPException as error:
            refused = error
        except asyncio.CancelledError:
            # uvicorn cancels what has not ended in time; the client still gets a reply.
            refused = HTTPException(503, "this server is shutting down")
        if not has_begun:
            await refusal(refused)(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> bool:
        """Read the body of a request; return whether its client is still there."""
        # uvicorn has refused a length that is no number.
        announced = int(dict(scope["headers"]).get(b"content-length", 0))
        deadline = time.monotonic() + BODY_WITHIN_S
        more = True
        while more:
            if max(announced, len(body)) > MAX_BODY_BYTES:
                raise HTTPException(413, f"over {MAX_BODY_BYTES} bytes")
            try:
                part = await asyncio.wait_for(receive(), deadline - time.monotonic())
            except asyncio.TimeoutError as error:
                said = "the request body was not received in time"
                raise HTTPException(408, said) from error
            if part["type"] == "http.disconnect":
                return False
            body += part["body"]
            more = part["more_body"]
        return True

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, body: bytes
    ) -> None:
        """Have a request answered, until its client leaves or the time is over."""
        whole: list[Message]
        whole = [{"type": "http.request", "body": body, "more_body": False}]

        async def received() -> Message:
            # Never a disconnect: `leaving` waits for that, and ends the work.
            return whole.pop() if whole else await asyncio.Future()

        async def work() -> None:
            async with self._places:
                await self._inner(scope, received, send)

        working = asyncio.ensure_future(work())
        leaving = asyncio.ensure_future(receive())
        try:
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait(
                (working, leaving), timeout=ANSWER_WITHIN_S, return_when=first
            )
            if working.done():
                working.result()
            elif not leaving.done():
                said = f"no answer within {ANSWER_WITHIN_S:g} s"
                raise HTTPException(503, said, AGAIN)
        finally:
            working.cancel()
            leaving.cancel()


def refusal(error: HTTPException) -> JSONResponse:
    """Return the reply that gives the reason of an error."""
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)
