"""Serves items and scores over HTTP, for trainers in any language.

    GET  /items?start=0&count=8    items of the stream, by their position
    POST /score                    {"item": ..., "completions": [...]} -> results
    POST /feedback                 {"item": ..., "values": [...]} moves the levels
    POST /verify, ...              the resources server of NeMo Gym
    POST /reward                   {"label": item, "response": text} of slime -> score
    GET  /health

A completion without a score has the value null and a reason, or the request fails with
an error status. A failure never becomes a reward.

Example:
    app = ScoreServer(Tasks("gcd"))  # for uvicorn, or any other ASGI server
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import json
import statistics
import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rg_env.errors import LibraryError, RunError, SettingError
from rg_env.stream.completion_scores import UNMATCHED, Result, score_async
from rg_env.stream.item import Item
from rg_env.stream.tasks import Tasks
from rg_env.workers.worker_pool import default_pool_size

T = TypeVar("T")

MAX_BODY_BYTES = 16 * 2**20
DRAIN_S = 5.0  # time for which a body that is too long is read
MAX_IN_FLIGHT = 2 * default_pool_size()
"""Requests at once; others wait, so that under load some get their reply in time."""

MAX_ITEM_BYTES = 2**16
MAX_COMPLETIONS = 1024
MAX_ITEMS = 256
FAILED_STATUSES = ("failed", "cancelled")
"""Statuses of a response of NeMo Gym that has no completion."""
# After this time, only the items that are ready are sent.
ITEMS_TIMEOUT_S = 30.0
RETRY_HEADERS = {"Retry-After": "1"}


class _Score(msgspec.Struct, forbid_unknown_fields=True):
    item: msgspec.Raw
    completions: Annotated[list[str], msgspec.Meta(max_length=MAX_COMPLETIONS)]
    thinking_open: bool = False


class _Values(msgspec.Struct, forbid_unknown_fields=True):
    item: msgspec.Raw
    values: Annotated[
        list[Annotated[float, msgspec.Meta(ge=0, le=1)] | None],
        msgspec.Meta(max_length=MAX_COMPLETIONS),
    ]


class _Range(msgspec.Struct, forbid_unknown_fields=True):
    # Clients in other languages read JSON numbers as doubles, which are exact to 2**53.
    start: Annotated[int, msgspec.Meta(ge=0, le=2**53)] | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=MAX_ITEMS)] = 1


class _SlimeSample(msgspec.Struct):
    label: msgspec.Raw
    response: str


class _Part(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Output(msgspec.Struct):
    type: str
    content: str | list[_Part] | None = None


class _Response(msgspec.Struct):
    output: list[_Output]
    status: str | None = None


class _Verified(msgspec.Struct):
    reward: float
    mask_sample: bool = False


class _Rows(msgspec.Struct):
    verify_responses: list[_Verified]


def _decode(body: bytes | msgspec.Raw, kind: type[T], name: str = "the body") -> T:
    try:
        try:
            return msgspec.json.decode(body, type=kind)
        except ValueError:  # perhaps a lone surrogate, which models write
            text = json.dumps(json.loads(bytes(body)), ensure_ascii=False)
            return msgspec.json.decode(text.encode(errors="replace"), type=kind)
    except (ValueError, RecursionError) as error:  # nested too deeply
        raise HTTPException(400, f"{name}: {error}") from error


def _text_of(response: _Response) -> str:
    """Return the text of a response, without thinking that a server has split off."""
    texts: list[str] = []
    for content in (o.content for o in response.output if o.type == "message"):
        if isinstance(content, str):
            texts.append(content)
        else:
            texts += [p.text for p in content or () if p.type == "output_text"]
    return "".join(texts)


def _query_of(request: Request, kind: type[T]) -> T:
    try:
        return msgspec.convert(dict(request.query_params), kind, strict=False)
    except ValueError as error:
        raise HTTPException(400, f"the query: {error}") from error


def _reply(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


def _refuse(request: Request | None, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        error = HTTPException(503, str(error), RETRY_HEADERS)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _refuse_long(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a request, but read its body for a while before the connection is closed.

    A connection that is closed while a body arrives is reset, and its reply is lost.
    """

    async def drain() -> None:
        while (await receive()).get("more_body"):
            pass

    async def send_first(message: Message) -> None:
        await send({**message, "more_body": True})

    text = f"a body has a Content-Length of at most {MAX_BODY_BYTES} bytes"
    await _refuse(None, HTTPException(413, text))(scope, receive, send_first)
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(drain(), DRAIN_S)
    await send({"type": "http.response.body"})


async def _health(request: Request) -> Response:
    return _reply({"status": "healthy"})


class ScoreServer:
    """An ASGI application.

    Args:
        tasks: The stream. This server must be its only user.
        shows_gold: Whether items have their reference answers.
        masks: Whether `/verify` replies with `mask_sample` if there is no score, which
            NeMo Gym knows from 0.7 on. Otherwise the status is 503, because an older
            client would train on the reward 0.0 beside it.
        others: An application of FastAPI for other paths.
    """

    def __init__(
        self,
        tasks: Tasks,
        *,
        shows_gold: bool = False,
        masks: bool = False,
        others: Any = None,
    ) -> None:
        self._tasks = tasks
        self._shows_gold = shows_gold
        self._masks = masks
        self._next = itertools.count()
        self._in_flight = asyncio.Semaphore(MAX_IN_FLIGHT)
        post = functools.partial(Route, methods=["POST"])
        nemo_gym = [
            post("/verify", self._verify),
            post("/seed_session", self._session),
            post("/close_session", self._session),
            post("/aggregate_metrics", self._aggregate),
        ]
        routes = [
            Route("/health", _health),
            Route("/items", self._items),
            post("/score", self._score),
            post("/reward", self._reward),
            post("/feedback", self._feedback),
            *nemo_gym,
            # The prefix of NeMo Gym's paths if it observes rollouts.
            Mount("/ng-rollout/{rollout}", routes=nemo_gym),
            *([Mount("/", others)] if others is not None else []),
        ]
        errors = (HTTPException, LibraryError, RunError, SettingError)
        self._application: ASGIApp = Starlette(
            routes=routes,
            exception_handlers=dict.fromkeys(errors, _refuse),
            # Starlette does not run the lifespan of a mounted application.
            lifespan=others and others.router.lifespan_context,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reply to a request, if its body is not too long."""
        application = self._application
        headers = dict(scope.get("headers", ()))
        length = int(headers.get(b"content-length", 0))  # uvicorn checks the number
        if length > MAX_BODY_BYTES or b"transfer-encoding" in headers:
            application = _refuse_long
        await application(scope, receive, send)

    # -- items and scores --------------------------------------------------------------

    async def _items(self, request: Request) -> Response:
        """Return the items of some draws, as far as they are ready in time."""
        query = _query_of(request, _Range)
        deadline = time.monotonic() + ITEMS_TIMEOUT_S
        position = 0
        draws = self._next if query.start is None else itertools.count(query.start)
        items: list[dict[str, Any]] = []
        for position in itertools.islice(draws, query.count):
            async with self._in_flight:
                item = await run_in_threadpool(self._tasks.at, position)
            if item is not None:
                fields = {
                    "position": position,
                    "task": item.task,
                    "level": item.level,
                    "question": item.question,
                    "messages": item.messages,
                    "item": msgspec.Raw(item.to_json().encode()),
                }
                if self._shows_gold:
                    fields["gold"] = item.gold
                items.append(fields)
            if time.monotonic() > deadline:
                break
        return _reply({"items": items, "next": position + 1})

    async def _score(self, request: Request) -> Response:
        body = _decode(await request.body(), _Score)
        results = await self._results(
            self._item(body.item), body.completions, body.thinking_open
        )
        return _reply({"results": results})

    async def _reward(self, request: Request) -> Response:
        """Return the score of a completion; slime retries a request without one."""
        body = _decode(await request.body(), _SlimeSample)
        query = _query_of(request, dict[Literal["thinking_open"], bool])
        item = self._item(body.label)
        (result,) = await self._results(item, [body.response], **query)
        scores = {"score": result.value, "outcome": result.outcome, **result.parts}
        return _reply(scores)

    def _item(self, raw: msgspec.Raw) -> Item:
        """Return the item of a JSON object, or of a string from `to_json`."""
        text = bytes(raw)
        if text.startswith(b'"'):
            text = _decode(text, str, "item").encode()
        if len(text) > MAX_ITEM_BYTES:
            raise HTTPException(422, f"item: over {MAX_ITEM_BYTES} bytes of JSON")
        try:
            return Item.from_json(text, self._tasks.task_modules)
        except (ValueError, RecursionError) as error:
            raise HTTPException(422, f"item: {error}") from error

    async def _results(
        self, item: Item, completions: Sequence[str], thinking_open: bool = False
    ) -> list[Result]:
        async with self._in_flight:
            results = await score_async(item, completions, thinking_open=thinking_open)
        unscored = [result for result in results if result.value is None]
        for result in unscored:
            if result.outcome == UNMATCHED:
                raise HTTPException(422, f"item: {result.reason}")
        if unscored and len(unscored) == len(results):
            raise HTTPException(503, unscored[0].reason, RETRY_HEADERS)
        return results

    async def _feedback(self, request: Request) -> Response:
        body = _decode(await request.body(), _Values)
        if not self._tasks.follows_results:
            raise HTTPException(409, "the levels and weights of this server are fixed")
        item = self._item(body.item)
        level = await run_in_threadpool(self._feed_back, item, body.values)
        return _reply({"level": level})

    def _feed_back(self, item: Item, values: list[float | None]) -> float | None:
        try:
            self._tasks.feedback(item, values)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        return self._tasks.levels().get(item.task)

    # -- NeMo Gym ----------------------------------------------------------------------

    async def _session(self, request: Request) -> Response:
        """Begin or end a session, which has no state."""
        body = _decode(await request.body(), dict[str, Any])
        name = "resources_session_id"
        return _reply({name: body[name]} if name in body else {})

    async def _verify(self, request: Request) -> Response:
        """Return a row with its reward."""
        row = _decode(await request.body(), dict[str, msgspec.Raw])
        name = "verifier_metadata"
        metadata = _decode(row.get(name, b"{}"), dict[str, msgspec.Raw], name)
        if "item" not in metadata:
            raise HTTPException(400, f"the row has no {name}.item")
        item = self._item(metadata["item"])
        is_open = _decode(metadata.get("thinking_open", b"false"), bool, name)
        response = _decode(row.get("response", b"{}"), _Response, "response")
        # If the server has split off the thinking, the completion does not begin in it.
        is_open &= all(output.type != "reasoning" for output in response.output)
        fields: dict[str, Any]
        try:
            if response.status in FAILED_STATUSES:
                raise HTTPException(503, f"response: its status is {response.status}")
            (result,) = await self._results(item, [_text_of(response)], is_open)
            fields = {
                "reward": result.value,
                "reward_components": result.parts,
                "outcome": result.outcome,
            }
        except HTTPException as error:
            if error.status_code != 503 or not self._masks:
                raise
            fields = {
                "reward": 0.0,
                "mask_sample": True,
                "failure_kind": "verifier_error",
                "failure_reason": error.detail,
            }
        return _reply({**row, **fields})

    async def _aggregate(self, request: Request) -> Response:
        """Return the mean reward of verified rows."""
        rows = _decode(await request.body(), _Rows).verify_responses
        rewards = [row.reward for row in rows if not row.mask_sample]
        metrics = {"mean/reward": statistics.fmean(rewards)} if rewards else {}
        return _reply(
            {
                "agent_metrics": metrics,
                "key_metrics": metrics,
                "group_level_metrics": [],
            }
        )
