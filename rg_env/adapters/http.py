"""Items and scores over HTTP, for trainers in any language and on other machines.

    GET  /items?start=0&count=8    items of the stream, by their position
    POST /score                    {"item": ..., "completions": [...]} -> results
    POST /feedback                 {"item": ..., "values": [...]}: moves the levels
    POST /verify, ...              the resources server of NeMo Gym
    GET  /health

If a completion has no score, its value is null with a reason, or the request fails with
an error status; a failure never becomes a reward. What a client can send, hold and wait
for is limited. If a client disconnects, only its own work is stopped.
"""

from __future__ import annotations

import asyncio
import hmac
import statistics
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from rg_env.errors import LibraryError, RunError, SettingError
from rg_env.standalone.item import Item
from rg_env.standalone.scores import UNMATCHED, Result, score_async
from rg_env.standalone.tasks import Tasks

T = TypeVar("T")

MAX_BODY_BYTES = 16 * 2**20
MAX_BODIES_BYTES = 256 * 2**20
"""Of all requests that are being read or answered."""
MAX_ITEM_BYTES = 2**16
MOST_COMPLETIONS = 1024
MOST_ITEMS = 256
MOST_REQUESTS = 256
"""That are answered at once; most of them wait for a worker."""
BODY_WITHIN_S = 30.0
ANSWER_WITHIN_S = 120.0
ITEMS_WITHIN_S = 30.0
"""After which the items that are made are sent, without the others."""

Headers = Sequence[tuple[bytes, bytes]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

AGAIN: Headers = [(b"retry-after", b"1")]
HANG_UP: Headers = [(b"connection", b"close")]


class RefusedError(Exception):
    """A request that is answered with another status than 200.

    Attributes:
        status: Of HTTP.
        headers: Of the reply.
    """

    def __init__(self, status: int, reason: str, headers: Headers = ()) -> None:
        super().__init__(reason)
        self.status, self.headers = status, headers


class _Score(msgspec.Struct, forbid_unknown_fields=True):
    item: msgspec.Raw
    completions: Annotated[list[str], msgspec.Meta(max_length=MOST_COMPLETIONS)]
    thinking_open: bool = False


class _Values(msgspec.Struct, forbid_unknown_fields=True):
    item: msgspec.Raw
    values: Annotated[
        list[Annotated[float, msgspec.Meta(ge=0, le=1)] | None],
        msgspec.Meta(max_length=MOST_COMPLETIONS),
    ]


class _Range(msgspec.Struct, forbid_unknown_fields=True):
    start: Annotated[int, msgspec.Meta(ge=0, le=2**53)] | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_ITEMS)] = 1


class _Part(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Output(msgspec.Struct):
    type: str
    content: str | list[_Part] | None = None


class _Response(msgspec.Struct):
    output: list[_Output]


class _Session(msgspec.Struct, omit_defaults=True):
    resources_session_id: str | None = None


class _Verified(msgspec.Struct):
    reward: float
    mask_sample: bool = False


class _Rows(msgspec.Struct):
    verify_responses: list[_Verified]


def _decoded(body: bytes | msgspec.Raw, kind: type[T], what: str = "the body") -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"{what}: {error}") from error


def _item_of_row(row: dict[str, msgspec.Raw]) -> msgspec.Raw:
    for name in ("verifier_metadata", "metadata"):
        if "item" not in row and name in row:
            row = _decoded(row[name], dict[str, msgspec.Raw], name)
    if "item" not in row:
        raise RefusedError(400, "the row has no verifier_metadata.item")
    return row["item"]


def _written(response: _Response) -> str:
    """Return what the model wrote, without what a server has split off as thinking."""
    contents = [o.content for o in response.output if o.type == "message"]
    return "".join(
        content
        if isinstance(content, str)
        else "".join(part.text for part in content if part.type == "output_text")
        for content in contents
        if content is not None
    )


async def _send(send: Send, status: int, body: bytes, headers: Headers = ()) -> None:
    plain = [(b"content-type", b"application/json")]
    plain.append((b"content-length", b"%d" % len(body)))
    start = {"type": "http.response.start", "status": status}
    await send({**start, "headers": [*plain, *headers]})
    await send({"type": "http.response.body", "body": body})


async def _while_there(
    work: Coroutine[Any, Any, bytes], receive: Receive
) -> bytes | None:
    """Return what some work returns; None, and no more work, if its client hangs up."""
    doing = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(receive())
    try:
        await asyncio.wait(
            (doing, leaving),
            timeout=ANSWER_WITHIN_S,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if doing.done():
            return doing.result()
        if leaving.done():
            return None
        raise RefusedError(503, f"no answer within {ANSWER_WITHIN_S:g} s", AGAIN)
    except (LibraryError, RunError, SettingError) as error:
        raise RefusedError(503, str(error), AGAIN) from error
    except asyncio.CancelledError as error:
        raise RefusedError(503, "this server is shutting down", HANG_UP) from error
    finally:
        doing.cancel()
        leaving.cancel()


class ScoreServer:
    """An ASGI application.

    Args:
        tasks: The stream. This server owns its levels: nobody else may use it.
        token: What clients have to send as `Authorization: Bearer TOKEN`.
        shows_gold: Whether items have their gold answers.
        masks: Whether `/verify` says `mask_sample` where there is no score, as NeMo Gym
            from 0.7 on knows it. Else that is status 503, because whoever does not know
            it would train on the reward 0.0 that has to stand beside it.
        others: An ASGI application for other paths.
    """

    def __init__(
        self,
        tasks: Tasks,
        *,
        token: str | None = None,
        shows_gold: bool = False,
        masks: bool = False,
        others: Any = None,
    ) -> None:
        self._tasks = tasks
        self._token = token
        self._shows_gold = shows_gold
        self._masks = masks
        self._others = others
        self._place = self._requests = self._body_bytes = 0
        # All that touches the stream, one after the other.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="items")
        self._routes: dict[str, tuple[str, Callable[[bytes], Any]]] = {
            "/items": ("GET", self._items),
            "/score": ("POST", self._score),
            "/feedback": ("POST", self._feedback),
            "/verify": ("POST", self._verify),
            "/seed_session": ("POST", self._session),
            "/close_session": ("POST", self._session),
            "/aggregate_metrics": ("POST", self._aggregate),
        }

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request."""
        kind, path = scope["type"], scope.get("path", "")
        is_ours = kind == "http" and path in (*self._routes, "/health")
        if not is_ours and self._others is None and kind != "http":
            raise RuntimeError(f"{kind} is not served here")  # as ASGI wants it
        reply: bytes | None = b'{"status":"healthy"}'
        try:
            if kind != "lifespan" and path != "/health":
                self._check_token(scope)
            if not is_ours and self._others is not None:
                await self._others(scope, receive, send)
                return
            if path != "/health":
                reply = await self._answer(scope, receive)
        except RefusedError as error:
            body = msgspec.json.encode({"error": str(error)})
            await _send(send, error.status, body, error.headers)
        else:
            if reply is not None:
                await _send(send, 200, reply)

    def _check_token(self, scope: Any) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"")
        wanted = f"Bearer {self._token}".encode()
        if self._token is not None and not hmac.compare_digest(given, wanted):
            raise RefusedError(
                401,
                "this server requires a token, as Authorization: Bearer TOKEN",
                [(b"www-authenticate", b"Bearer")],
            )

    async def _answer(self, scope: Any, receive: Receive) -> bytes | None:
        """Return the body of a reply; None where the client has gone."""
        if scope["path"] not in self._routes:
            raise RefusedError(404, "there is no such path")
        method, answer = self._routes[scope["path"]]
        if scope["method"] != method:
            raise RefusedError(
                405, f"this takes {method}", [(b"allow", method.encode())]
            )
        body = bytearray()
        try:
            if not await self._read(scope, receive, body):
                return None
            if self._requests >= MOST_REQUESTS:
                raise RefusedError(503, "too many requests are waiting", AGAIN)
            self._requests += 1
            try:
                given = scope["query_string"] if method == "GET" else bytes(body)
                return await _while_there(answer(given), receive)
            finally:
                self._requests -= 1
        finally:
            self._body_bytes -= len(body)

    async def _read(self, scope: Any, receive: Receive, body: bytearray) -> bool:
        """Read the body of a request; say whether its client is still there."""
        announced = int(dict(scope["headers"]).get(b"content-length", 0))
        deadline = time.monotonic() + BODY_WITHIN_S
        more = True
        while more:
            if max(announced, len(body)) > MAX_BODY_BYTES:
                raise RefusedError(413, f"over {MAX_BODY_BYTES} bytes", HANG_UP)
            try:
                left_s = deadline - time.monotonic()
                part = await asyncio.wait_for(receive(), left_s)
            except asyncio.TimeoutError as error:
                raise RefusedError(
                    408, "the request body was not received in time", HANG_UP
                ) from error
            if part["type"] == "http.disconnect":
                return False
            body += part["body"]
            self._body_bytes += len(part["body"])
            if self._body_bytes > MAX_BODIES_BYTES:
                raise RefusedError(
                    503,
                    "too many request bodies are being received",
                    [*AGAIN, *HANG_UP],
                )
            more = part["more_body"]
        return True

    # -- items and scores --------------------------------------------------------------

    async def _items(self, query: bytes) -> bytes:
        """Return the items that some draws give, as far as they are made in time."""
        try:
            given = dict(parse_qsl(query.decode("ascii"), strict_parsing=bool(query)))
            wanted = msgspec.convert(given, _Range, strict=False)
        except ValueError as error:
            raise RefusedError(400, f"start and count: {error}") from error
        position = self._place if wanted.start is None else wanted.start
        end = position + wanted.count
        if wanted.start is None:
            self._place = end
        deadline = time.monotonic() + ITEMS_WITHIN_S
        items: list[dict[str, Any]] = []
        while position < end and time.monotonic() < deadline:
            item, position = await self._in_thread(self._draw, position)
            if position <= end:  # else the last draws gave none
                items.append(self._shown(item, position - 1))
        return msgspec.json.encode({"items": items, "next": min(position, end)})

    async def _in_thread(self, function: Callable[..., T], *args: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, function, *args)

    def _draw(self, position: int) -> tuple[Item, int]:
        self._tasks.seek(position)
        return next(self._tasks), self._tasks.position

    def _shown(self, item: Item, position: int) -> dict[str, Any]:
        shown = {
            "position": position,
            "task": item.task,
            "level": item.level,
            "question": item.question,
            "messages": item.messages,
            "item": msgspec.Raw(item.to_json().encode()),
        }
        return {**shown, "gold": item.gold} if self._shows_gold else shown

    async def _score(self, body: bytes) -> bytes:
        wanted = _decoded(body, _Score)
        item, how = self._item(wanted.item), {"thinking_open": wanted.thinking_open}
        results = await self._results(item, wanted.completions, **how)
        return msgspec.json.encode({"results": results})

    def _item(self, raw: msgspec.Raw) -> Item:
        """Return the item of a JSON object, or of its text as `to_json` has it."""
        text = bytes(raw)
        if text.startswith(b'"'):
            text = _decoded(text, str, "item").encode()
        if len(text) > MAX_ITEM_BYTES:
            raise RefusedError(422, f"item: over {MAX_ITEM_BYTES} bytes of JSON")
        try:
            return Item.from_json(text, self._tasks.task_modules)
        except (ValueError, RecursionError) as error:
            raise RefusedError(422, f"item: {error}") from error

    async def _results(
        self, item: Item, completions: Sequence[str], **how: bool
    ) -> list[Result]:
        results = await score_async(item, completions, **how)
        lost = [result for result in results if result.value is None]
        for result in lost:
            if result.outcome == UNMATCHED:
                raise RefusedError(422, f"item: {result.reason}")
        if lost and len(lost) == len(results):
            raise RefusedError(503, lost[0].reason, AGAIN)
        return results

    async def _feedback(self, body: bytes) -> bytes:
        wanted = _decoded(body, _Values)
        if not self._tasks.follows_results:
            raise RefusedError(409, "the levels and weights of this server are fixed")
        item = self._item(wanted.item)
        level = await self._in_thread(self._feed_back, item, wanted.values)
        return msgspec.json.encode({"level": level})

    def _feed_back(self, item: Item, values: list[float | None]) -> float | None:
        if item.task not in self._tasks.categories():
            raise RefusedError(422, f"item: {item.task} is no task of this server")
        self._tasks.feedback(item, values)
        return self._tasks.levels().get(item.task)

    # -- NeMo Gym ----------------------------------------------------------------------

    async def _session(self, body: bytes) -> bytes:
        """Begin or end a session, of which nothing has to be kept."""
        return msgspec.json.encode(_decoded(body, _Session))

    async def _verify(self, body: bytes) -> bytes:
        """Return a row with its reward."""
        row = _decoded(body, dict[str, msgspec.Raw])
        item = self._item(_item_of_row(row))
        text = _written(_decoded(row.get("response", b"{}"), _Response, "response"))
        found: dict[str, Any]
        try:
            (result,) = await self._results(item, [text])
            found = {"reward": result.value, "outcome": result.outcome}
        except RefusedError as error:
            if error.status != 503 or not self._masks:
                raise
            found = {"reward": 0.0, "mask_sample": True}
            found |= {"failure_kind": "verifier_error", "failure_reason": str(error)}
        return msgspec.json.encode({**row, **found})

    async def _aggregate(self, body: bytes) -> bytes:
        """Return the mean reward of rows that were verified."""
        rows = _decoded(body, _Rows).verify_responses
        measured = [row.reward for row in rows if not row.mask_sample]
        metrics = {"mean/reward": statistics.fmean(measured)} if measured else {}
        found = {"agent_metrics": metrics, "key_metrics": metrics}
        return msgspec.json.encode({**found, "group_level_metrics": []})
