"""The client of one inference server, whatever its type.

Mends B22 and B23 of docs/host_defects.md. What is sent is what the framework's own
classes send; differs:

    tries       one; the next is `Inference`'s, at whatever server is chosen then
    429         the server rests as long as it says, within bounds
    left out    what waits for a place there, or hangs there, is queried elsewhere
    connections kept open; replies bounded, and read off the event loop where long
    timings     the newest `rolling_buffer_length` are kept, instead of all
    health      of every type checked at `/health`; bounded in time

A server is probed before its first request, and before it is used again after a
failure. The framework still chooses the server and applies its limits.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, ClassVar, TypeVar

from atroposlib.envs.server_handling.server_baseline import APIServer

from rg_env import patience
from rg_env.inference.completions import check_some_usable, highest_id
from rg_env.inference.connection import (
    CHAT,
    Connection,
    extra_body_of,
    sampling_extra_of,
    secrets_of,
)
from rg_env.inference.probe import ProbeRequest, find_route, greeting, no_route
from rg_env.inference.request_failures import (
    MAX_COMPLETION_TOKENS,
    NOTHING,
    SILENT,
    Failure,
    RequestFailedError,
    failure_of,
)
from rg_env.inference.routes import (
    Body,
    Generated,
    SamplingFields,
    TokenReply,
    TokenRoute,
    read_chat,
    read_reply,
)
from rg_env.inference.server_state import ServerLeftOutError, ServerState

logger = logging.getLogger(__name__)

T = TypeVar("T")

UNLIMITED_TOKENS = 2**17
"""Of a completion for which no limit is set."""

HEAD_START_S = 0.003
"""What a reply waits before it is read, so that the next request goes out first: many
groups end together where completions are equally long, and the server would wait until
all their replies have been read."""


def _pass(*_: object) -> None:
    pass


class Client(APIServer):
    """A client for any inference server, which also knows when not to query it.

    Attributes:
        chats: Whether the server is sent messages, unless token ids are needed.
        routes: At which it is queried for token ids, the likeliest first.
        tokenizer: Of the model.
        connection: To the server.
        state: Whether the server is there, and is queried.
        server_healthy: The same for the framework, which chooses a server by it.
        on_change: Told after the server was left out, and after it was taken back.
        on_failure: Called for each request that failed, including probes.
        needs_tokens: Whether the completions go to a trainer.
        probe_request: The request for a probe; None for a greeting.
        is_probed: Whether a probe has found out how to query the server.
        route: The route for token ids; None if the server is queried as a chat.
    """

    chats: ClassVar[bool] = False
    routes: ClassVar[tuple[TokenRoute, ...]]
    tokenizer: Any

    def __init__(self, config: Any, reasoning_config: Any = None) -> None:
        super().__init__(config, reasoning_config=reasoning_config)
        newest = partial(deque[float], maxlen=config.rolling_buffer_length)
        self.request_timings, self.attempts_list = newest(), newest()
        self.eval_request_timings, self.eval_attempts_list = newest(), newest()
        self.connection = Connection(config, is_openai=self.chats)
        self.state = ServerState()
        self.state.on_change = self._note_change
        self.on_change: Callable[[Client], None] = _pass
        self.on_failure: Callable[[Client, Failure], None] = _pass
        self.needs_tokens = False
        self.probe_request: ProbeRequest | None = None
        self.is_probed = False
        self.route: TokenRoute | None = None
        self._probing: asyncio.Future[None] | None = None
        self._taking_back: asyncio.Future[None] | None = None
        self._under_way: set[asyncio.Future[Any]] = set()
        self._limit_name = "max_tokens"

    # -- whether it is queried ---------------------------------------------------------

    def _note_change(self) -> None:
        self._tell_framework()
        self.on_change(self)

    def _tell_framework(self) -> None:
        self.server_healthy = self.state.admits
        if self.state.is_resting:
            # The framework looks at the value only, so somebody has to set it again.
            rest_s = self.state.rest_left_s
            asyncio.get_running_loop().call_later(rest_s, self._tell_framework)

    def note_failure(self, error: Exception) -> None:
        """A request failed."""
        failure = failure_of(error, *secrets_of(self.config))
        # What is under way there may still be answered: only `leave_out` cancels it.
        self.state.note_failure(failure)
        self._tell_framework()
        self.on_failure(self, failure)

    def leave_out(self, failure: Failure) -> None:
        """Stop using a server that is gone, and cancel the requests that hang there."""
        self.state.leave_out(failure)
        for request in self._under_way:
            request.cancel()

    def probe_if_due(self) -> None:
        """Start to probe a server that is not in use, if its pause is over."""
        if self.state.begin_probe():
            self._taking_back = asyncio.ensure_future(self._take_back())

    async def _take_back(self) -> None:
        """Probe a server, which may have changed while it was not used."""
        passed = False
        silence = Failure("TimeoutError", SILENT, NOTHING)
        hanging = asyncio.get_running_loop().call_later(
            patience.PROBE_SILENT_AFTER_S, self.state.leave_out, silence
        )
        try:
            if self.is_probed and self.config.health_check:
                await self.connection.check_health()
            await self.probe()
            passed = True
        except Exception as error:  # noqa: BLE001 - as many kinds as ways to be down
            self.note_failure(error)
        finally:
            hanging.cancel()
            self.state.end_probe(passed=passed)

    async def check_server_status_task(self, chat_completion: bool = True) -> None:
        """Check the server's health for ever; one that is gone is left out."""
        missed = 0
        while True:
            try:
                await self.connection.check_health()
                if missed:
                    self.state.probe_soon()
                missed = 0
            except RequestFailedError as error:
                missed += 1
                if missed >= patience.HEALTH_MISSES_IN_A_ROW:
                    self.leave_out(error.failure)
            await asyncio.sleep(patience.HEALTH_EVERY_S)

    # -- in place of the framework's three tries ---------------------------------------

    async def unless_lost(
        self, querying: Awaitable[T], check: Callable[[T], None] = _pass
    ) -> T:
        """Return the result of a request; note if the request or its check fails.

        Raises:
            ServerLeftOutError: The server is lost.
        """
        request = asyncio.ensure_future(querying)
        self._under_way.add(request)
        try:
            # Awaited itself, its cancellation would look like the caller's.
            await asyncio.wait({request})
        finally:
            self._under_way.discard(request)
            request.cancel()
        # By `leave_out`: where the caller is cancelled, the wait above has raised.
        if request.cancelled():
            raise ServerLeftOutError(self.state.failure.said)
        try:
            reply = request.result()
            check(reply)
        except Exception as error:
            self.note_failure(error)
            raise
        return reply

    async def _once(
        self,
        query: Callable[..., Awaitable[T]],
        places: AbstractAsyncContextManager[Any],
        stat_dict: dict[str, Any],
        fields: dict[str, Any],
    ) -> T:
        async with places:
            if not self.state.admits:
                self._tell_framework()  # which has set it at the first request
                raise ServerLeftOutError(self.state.failure.said)
            stat_dict["start"] = time.time()
            stat_dict["attempts"] += 1
            reply = await self.unless_lost(query(**fields), self._check)
            stat_dict["end"] = time.time()
        self.state.note_answer()
        return reply

    def _check(self, reply: Any) -> None:
        tokenizer = getattr(self, "tokenizer", None)
        check_some_usable(reply, tokenizer and highest_id(tokenizer))

    async def _chat_comp(self, stat_dict: dict[str, Any], **fields: Any) -> Any:
        return await self._once(self.query_chat, self.sem, stat_dict, fields)

    async def _chat_eval(self, stat_dict: dict[str, Any], **fields: Any) -> Any:
        return await self._once(self.query_chat, self.eval_sem, stat_dict, fields)

    async def _tokens_and_logprobs_comp(
        self, stat_dict: dict[str, Any], **fields: Any
    ) -> TokenReply:
        return await self._once(self.query_tokens, self.sem, stat_dict, fields)

    async def _tokens_and_logprobs_comp_eval(
        self, stat_dict: dict[str, Any], **fields: Any
    ) -> TokenReply:
        return await self._once(self.query_tokens, self.eval_sem, stat_dict, fields)

    # The framework's is decorated with a retry, of three tries without a word.
    chat_completion = inspect.unwrap(APIServer.chat_completion)

    # -- token ids ---------------------------------------------------------------------

    async def query_route(
        self, route: TokenRoute, prompt: list[int], fields: SamplingFields, **more: Any
    ) -> list[list[bytes]]:
        """Query for token ids; return the bodies of the replies, normally only one.

        The request contains the sampling parameters, `n`, and the other fields of the
        body.
        """
        model, extra = self.config.model_name, sampling_extra_of(self.config)
        n, most = fields.get("n", 1), fields.get("max_tokens", UNLIMITED_TOKENS)

        def body(n: int) -> Body:
            named = {**fields, "n": n} if "n" in fields else fields
            return route.body(prompt, named, model, extra) | more

        return await self.connection.query(route.path, body, n, len(prompt) + most)

    async def read_route(
        self, route: TokenRoute, replies: list[list[bytes]]
    ) -> Generated:
        """Read the replies of a route as one; an error where they are none."""
        secrets, asked = secrets_of(self.config), self.config.model_name
        how = partial(route.read, asked=asked)
        read = [await read_reply(how, blocks, *secrets) for blocks in replies]
        parts = zip(*read, strict=True)
        return Generated(*(list(itertools.chain.from_iterable(part)) for part in parts))

    async def query_tokens(
        self, on_reply: Callable[[], None] | None = None, **fields: Any
    ) -> TokenReply:
        """Query once; returns prompt tokens, tokens, logprobs and finish reasons.

        Args:
            on_reply: Called when the reply has come, before any of it is read.
            fields: `prompt` or `input_ids`, and what is sampled with.
        """
        text, prompt = fields.pop("prompt", None), fields.pop("input_ids", None)
        if prompt is None:
            prompt = self.tokenizer.encode(text)
        # The chat template has written one, and the tokenizer has added another.
        if len(prompt) >= 2 and prompt[0] == self.tokenizer.bos_token_id == prompt[1]:
            prompt = prompt[1:]
        fields.pop("model", None)
        if not self.is_probed:
            await self.probe()
        if self.route is None:
            raise no_route(self, "it gives no token ids")
        route = self.route
        try:
            replies = await self.query_route(route, prompt, fields)
        except RequestFailedError as error:
            if error.failure.is_absence:
                self.is_probed = False  # it has come back as another server
            raise
        if on_reply is not None:
            on_reply()
            await asyncio.sleep(HEAD_START_S)
        return prompt, *await self.read_route(route, replies)

    _tokens_and_logprobs_completion_wrapper = query_tokens

    # -- a chat ------------------------------------------------------------------------

    async def query_chat(self, **fields: Any) -> Any:
        """Query a chat once; returns what openai's client returns."""
        given = fields.pop("extra_body", None) or {}
        body = {**fields, **extra_body_of(self.config), **given}
        n, limit_name = fields.get("n", 1), self._limit_name
        try:
            reply = await self._chat(body, n)
        except RequestFailedError as error:
            if not error.failure.wants_another_limit or limit_name not in body:
                raise
            self._limit_name = MAX_COMPLETION_TOKENS
            reply = await self._chat(body, n)
        if len(reply.choices) == 1 < n:
            # It ignores n: from here on, one request each.
            self.connection.query_one_by_one()
            reply.choices += (await self._chat(body, n - 1)).choices
        return reply

    _chat_completion_wrapper = query_chat

    async def _chat(self, given: Body, n: int) -> Any:
        most = given.get("max_tokens") or UNLIMITED_TOKENS
        body = dict(given)
        if "max_tokens" in body:
            body[self._limit_name] = body.pop("max_tokens")
        replies = await self.connection.query(
            CHAT, lambda n: body | {"n": n} if "n" in body else body, n, most
        )
        secrets = secrets_of(self.config)
        first, *others = [
            await read_reply(read_chat, blocks, *secrets) for blocks in replies
        ]
        for other in others:
            first.choices += other.choices
        return first

    # -- the probe, and the end --------------------------------------------------------

    async def probe(self) -> None:
        """Find out how to query the server; other requests wait for the result."""
        if self._probing is None or self._probing.done():
            self._probing = asyncio.ensure_future(self._probe())
            # Its error is taken, since nobody may be waiting for it any more.
            self._probing.add_done_callback(
                lambda done: done.cancelled() or done.exception()
            )
        await asyncio.shield(self._probing)

    async def _probe(self) -> None:
        finding = find_route(self, self.probe_request or greeting(self.tokenizer))
        route = await asyncio.wait_for(finding, patience.PROBE_WITHIN_S)
        if not self.is_probed or route != self.route:
            how = f"token ids from {route.path}" if route else "queried as a chat"
            logger.info("inference at %s: %s", self.config.base_url, how)
        self.route, self.is_probed = route, True

    async def close(self) -> None:
        """Stop what is under way and close the connections; may be called twice."""
        self.state.is_awaited = False  # a probe that ends now says nothing of it
        for probe in (self._probing, self._taking_back):
            if probe is not None and not probe.done():
                probe.cancel()
                await asyncio.gather(probe, return_exceptions=True)
        await self.connection.close()
        if hasattr(self, "openai"):
            await self.openai.close()
