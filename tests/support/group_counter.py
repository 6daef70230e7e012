"""A counter in front of the Atropos API: groups taken and refused.

    python -m tests.support.group_counter --port 8000 --quick

`GET /simulation/counts` tells how many there were, when the first one came, and which
process it is. Nothing else of the API is touched.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from rg_env.demo import api_process

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

PROGRAM = "tests.support.group_counter"
COUNTS_PATH = "/simulation/counts"
GROUP_PATHS = ("/scored_data", "/scored_data_list")
JSON = [(b"content-type", b"application/json")]


class GroupCounter:
    """An ASGI application with a counter of the groups it is sent.

    Attributes:
        counts: `accepted` groups, those `buffered` because of their size, `rejected`
            requests, and `first`, the monotonic time of the first accepted one.
    """

    def __init__(self, inner: App) -> None:
        self._inner = inner
        self.counts: dict[str, Any] = dict.fromkeys(
            ("accepted", "buffered", "rejected"), 0
        )
        self.counts["first"] = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        path = scope.get("path")
        if path == COUNTS_PATH:
            body = json.dumps(self._snapshot()).encode()
            start = {"type": "http.response.start", "status": 200, "headers": JSON}
            await send(start)
            await send({"type": "http.response.body", "body": body})
        elif path in GROUP_PATHS:
            await self._count(scope, receive, send)
        else:
            await self._inner(scope, receive, send)

    def _snapshot(self) -> dict[str, Any]:
        return {**self.counts, "t": time.monotonic(), "pid": os.getpid()}

    async def _count(self, scope: Message, receive: Receive, send: Send) -> None:
        status, body = 500, b""

        async def watched(message: Message) -> None:
            nonlocal status, body
            status = message.get("status", status)
            body += message.get("body", b"")
            await send(message)

        try:
            await self._inner(scope, receive, watched)
        finally:
            self._record(status, body)

    def _record(self, status: int, body: bytes) -> None:
        counts = self.counts
        if status >= 400:
            counts["rejected"] += 1
            return
        reply = json.loads(body)
        total = reply.get("groups_processed", 1)
        buffered = reply.get("buffered", int(reply["status"] == "buffered"))
        counts["buffered"] += buffered
        counts["accepted"] += total - buffered
        if counts["first"] is None and counts["accepted"]:
            counts["first"] = time.monotonic()


if __name__ == "__main__":
    sys.exit(api_process.main(GroupCounter))
