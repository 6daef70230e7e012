"""The client of one inference server: how it is queried, and whether it is.

Mends B22, B23 and B25 of docs/host_defects.md: the next try of a request is that of
`Servers`, at whatever server is chosen then; a server that fails is left out until a
probe passes, and what hangs at one that is gone is queried elsewhere; token ids come by
whatever route the server has. What is sent is what the framework's own classes send.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from atroposlib.envs.server_handling.server_baseline import APIServer
from atroposlib.envs.server_handling.vllm_server import AutoTokenizer
from openai.types.chat import ChatCompletion

from rg_env.errors import shown
from rg_env.executor import in_thread, keep_gil, release_gil
from rg_env.inference.completions import (
    ProbeRequest,
    Sampling,
    check_some_usable,
    find_route,
    is_same_model,
    read_texts,
    read_tokens,
    with_one_bos,
)
from rg_env.inference.connection import (
    ABOUT_THE_REQUEST,
    LONGEST_READ,
    MODEL,
    NOTHING,
    PAGE_S,
    SILENCE,
    Connection,
    Failure,
    RequestFailedError,
    bad_reply,
    body_summary,
    extra_body_of,
    no_reply,
    sampling_extra_of,
    secrets_of,
)
from rg_env.inference.routes import (
    CHAT,
    NO_SUCH_FORM,
    ROUTES,
    SGLANG,
    Body,
    Completion,
    Prompt,
    Route,
)
from rg_env.logs import is_sampled

logger = logging.getLogger(__name__)

# For a few short completions, which wait behind what the server has begun.
PROBE_WITHIN_S = 120.0

CIRCUIT_FAILURES_IN_A_ROW = 3
# Between two probes of a server that is left out.
CIRCUIT_FIRST_PAUSE_S, CIRCUIT_LONGEST_PAUSE_S = 1.0, 10.0

HEALTH_EVERY_S = 1.0
# Health checks without an answer after which what hangs at the server is given up.
HEALTH_MISSES_IN_A_ROW = 3

CLOSE_GRACE_S = 2.0

T = TypeVar("T")
Call = Callable[[], None]

MAX_TOKENS, MAX_COMPLETION_TOKENS = "max_tokens", "max_completion_tokens"
"""The limit, and what some models want it called."""

# A reply up to here is read in about a millisecond, in place; the text of a chat is
# encoded, which takes longer than decoding token ids.
SHORT_REPLY_BYTES, SHORT_CHAT_BYTES = 2**16, 2**12

# What a reply waits before it is read, so that the next request goes out first: many
# groups end together where completions are equally long, and the server would wait
# until all their replies have been read.
HEAD_START_S = 0.003


class ServerLeftOutError(Exception):
    """The server is not queried now; another may be."""


class Client(APIServer):
    """A client of an inference server of any type.

    A server is left out until a probe passes, at the start too. A single failure leaves
    none out, because one item may be the reason. If a server passes its probe and fails
    again, the next pause is longer; a real answer resets this.

    `failure` is the newest, which says why it is left out; `on_failure` is called for
    each, probes included. Where `needs_tokens` is set, completions go to a trainer.
    """

    def __init__(self, config: Any, reasoning_config: Any = None) -> None:
        self.is_out, self.failure = True, SILENCE
        super().__init__(config, reasoning_config=reasoning_config)
        self.request_timings = deque[float](maxlen=config.rolling_buffer_length)
        self.eval_request_timings = self.request_timings.copy()
        self.check_task: asyncio.Future[None] | None = None
        self.initialized = True  # else the framework would begin another check
        self.tokenizer = cast(Any, None)
        if config.server_type in ("vllm", "sglang"):
            self.tokenizer = AutoTokenizer.from_pretrained(config.tokenizer_name)
        is_openai = config.server_type == "openai"
        self.connection = Connection(config, is_openai=is_openai)
        self.on_failure: Callable[[Failure], object] = lambda _: None
        self.needs_tokens = False
        self.probe_request: ProbeRequest | None = None
        self.route: Route | None = None
        self._failures, self._times_out = 0, 1
        self._pause_s = 0.0  # before the first probe
        self._limit_name = MAX_TOKENS
        self._ignores_n: bool = config.n_kwarg_is_ignored
        self._names: set[str] = set()  # of the model, in replies
        self._under_way: set[asyncio.Future[Any]] = set()

    def routes(self) -> list[Route]:
        """Return the routes in the order in which they are tried."""
        kind = self.config.server_type
        ordered = sorted(ROUTES, key=lambda r: kind == "sglang" and r is not SGLANG)
        if self.needs_tokens:
            return ordered
        # An endpoint is sent messages, unless token ids are needed.
        return [CHAT] if kind == "openai" else [*ordered, CHAT]

    # -- whether it is queried ---------------------------------------------------------

    @property
    def server_healthy(self) -> bool:
        """What the framework chooses a server by; one that is left out is probed."""
        self.recover()
        return not self.is_out

    @server_healthy.setter
    def server_healthy(self, _: bool) -> None:
        pass  # only our state decides it

    def note_failure(self, failure: Failure) -> None:
        """A request failed, which may be its own fault or the server's."""
        self.failure = failure
        if failure.status not in ABOUT_THE_REQUEST:
            self._failures += 1
            if self._failures >= CIRCUIT_FAILURES_IN_A_ROW:
                self.leave_out(failure)
        self.on_failure(failure)

    def leave_out(self, failure: Failure, *, is_gone: bool = False) -> None:
        """Stop using the server; if it is gone, nothing that hangs there is awaited."""
        for request in self._under_way if is_gone else ():
            request.cancel()
        if not self.is_out:
            self.is_out, self.failure = True, failure
            self._times_out += 1
            if is_sampled(self._times_out):
                url, why = self.config.base_url, failure.text
                logger.warning("inference at %s is not used for now (%.300s)", url, why)
        self.recover()

    def recover(self) -> None:
        """Begin to probe the server while it is left out, and to check its health."""
        if self.check_task is None or self.check_task.done():
            self.check_task = asyncio.ensure_future(self.check_server_status_task())

    async def check_server_status_task(self, chat_completion: bool = True) -> None:
        """Probe the server while it is left out, else check its health, for ever."""
        missed = 0
        while True:
            if self.is_out:
                missed = 0
                await self._probe_after_pause()
                continue
            await asyncio.sleep(HEALTH_EVERY_S)
            try:
                if self.config.health_check:
                    await self.connection.check_health()
                missed = 0
            except RequestFailedError as error:
                missed += 1
                if missed >= HEALTH_MISSES_IN_A_ROW:
                    self.leave_out(error.failure, is_gone=True)

    async def _probe_after_pause(self) -> None:
        # With jitter: many environments may wait for one server that starts.
        pause_s = self._pause_s * random.uniform(0.75, 1.25)
        longer_s = max(2 * self._pause_s, CIRCUIT_FIRST_PAUSE_S)
        self._pause_s = min(longer_s, CIRCUIT_LONGEST_PAUSE_S)
        await asyncio.sleep(pause_s)
        try:
            await asyncio.wait_for(self.probe(), PROBE_WITHIN_S)
        except Exception as error:  # noqa: BLE001 - as many as ways to be down
            self.note_failure(failure := self._failure_of(error))
            self.leave_out(failure, is_gone=failure.how == NOTHING)

    def _failure_of(self, error: Exception) -> Failure:
        if isinstance(error, RequestFailedError):
            return error.failure
        return no_reply(error, *secrets_of(self.config))

    async def probe(self) -> None:
        """Find out how to query the server, which may have changed, and use it."""
        request = self.probe_request
        if request is None:
            tokens = self.tokenizer.encode("hi")
            messages = [{"role": "user", "content": "hi"}]
            request = ProbeRequest(Prompt(messages, tokens, False), {"n": 2})
        self.route = await find_route(self, request)
        if is_sampled(self._times_out):
            how = "queried as a chat" if self.route is CHAT else "token ids from "
            how += self.route.path if self.route is not CHAT else ""
            logger.info("inference at %s: %s", self.config.base_url, how)
        self.is_out, self._failures = False, 0

    # -- completions -------------------------------------------------------------------

    async def complete(
        self, prompt: Prompt, n: int, sampling: Sampling, on_reply: Call | None = None
    ) -> list[Completion]:
        """Query a server once that was probed.

        Raises:
            RequestFailedError: It fails, or no completion is usable.
            ServerLeftOutError: It was left out.
        """
        fields = {**vars(sampling), "n": n}
        is_training = fields.pop("split") == "train"
        timings = self.request_timings if is_training else self.eval_request_timings
        async with self.sem if is_training else self.eval_sem:
            if self.is_out or self.route is None:
                raise ServerLeftOutError(self.failure.text)
            began = time.monotonic()
            asking = self.ask(self.route, prompt, fields, on_reply)
            request = asyncio.ensure_future(asking)
            self._under_way.add(request)
            try:
                # Awaited itself, its cancellation would look like the caller's.
                await asyncio.wait({request})
            finally:
                self._under_way.discard(request)
                request.cancel()
            if request.cancelled():  # by `leave_out`
                raise ServerLeftOutError(self.failure.text)
            try:
                completions = request.result()
                check_some_usable(completions)
            except Exception as error:
                failure = self._failure_of(error)
                self.note_failure(failure)
                raise RequestFailedError(failure) from error
            timings.append(time.monotonic() - began)
        self.is_out, self._failures, self._pause_s = False, 0, CIRCUIT_FIRST_PAUSE_S
        return completions

    async def ask(
        self, route: Route, prompt: Prompt, fields: Body, on_reply: Call | None = None
    ) -> list[Completion]:
        """Query by a route; return what came, whether of use or not."""

        def body(n: int) -> Body:
            if route is CHAT:
                chat = route.body(prompt, fields | {"n": n}, self.config.model_name, {})
                return self._chat_body(self._inject_reasoning_kwargs(chat))
            extra = sampling_extra_of(self.config)
            return route.body(prompt, fields | {"n": n}, self.config.model_name, extra)

        def read(bodies: Iterator[bytes], release: Call) -> list[Completion]:
            parts = (route.read(body, prompt) for body in bodies)
            completions = itertools.chain.from_iterable(parts)
            if route is CHAT:
                return read_texts(self.tokenizer, completions)
            return read_tokens(self.tokenizer, completions, release)

        n = fields.get("n", 1)
        completions = await self._query(route.path, body, read, n, on_reply)
        if len(completions) == 1 < n:
            self._ignores_n = True
        names = {each.model for each in completions if isinstance(each.model, str)}
        for name in names - self._names:
            if not is_same_model(self.config.model_name, name):
                await self._check_model(name)
            self._names.add(name)
        return completions

    async def _check_model(self, name: str) -> None:
        """Accept the name of the model in a reply, or raise a `RequestFailedError`.

        A server may answer with another name of the requested model, as its list says.
        One that does not list it has names of its own, of which the first is accepted,
        but a trainer does not learn from a model that is listed in its place.
        """
        requested = self.config.model_name
        try:
            models = await self.connection.models(PAGE_S)
            roots = {model["id"]: model.get("root") or model["id"] for model in models}
        except (RequestFailedError, *NO_SUCH_FORM):
            roots = {}
        is_alias = requested in roots and roots[requested] == roots.get(name, name)
        is_own_name = not self._names and requested not in roots
        is_other = self.needs_tokens and name in roots
        if not is_alias and (is_other or not is_own_name):
            text = f"a reply is of the model {shown(name)}, not of {shown(requested)}"
            failure = Failure("OtherModelError", text, setting=MODEL)
            raise RequestFailedError(failure)
        if is_own_name:
            text = "inference at %s calls the model %s %s"
            logger.warning(text, self.config.base_url, shown(requested), shown(name))

    def _chat_body(self, given: Body) -> Body:
        fields = {**given}
        more = extra_body_of(self.config) | (fields.pop("extra_body", None) or {})
        if MAX_TOKENS in fields:
            fields[self._limit_name] = fields.pop(MAX_TOKENS)
        return {"model": self.config.model_name, **fields, **more}

    async def _query(
        self,
        path: str,
        body: Callable[[int], Body],
        read: Callable[[Iterator[bytes], Call], T],
        n: int,
        on_reply: Call | None = None,
    ) -> T:
        """Query once for `n` completions, or `n` times where the server ignores it.

        `read` gets the bodies of the replies, and what to call between completions.
        """
        times, at_once = (n, 1) if self._ignores_n else (1, n)
        requests = [
            asyncio.ensure_future(self.connection.post(path, body(at_once)))
            for _ in range(times)
        ]
        try:
            replies = await asyncio.gather(*requests)
        except RequestFailedError as error:
            if MAX_COMPLETION_TOKENS in error.failure.text:
                self._limit_name = MAX_COMPLETION_TOKENS  # from the next try on
            raise
        finally:
            for request in requests:
                request.cancel()
        if on_reply is not None:
            on_reply()
            await asyncio.sleep(HEAD_START_S)
        bodies = map(b"".join, replies)
        try:
            short_bytes = SHORT_CHAT_BYTES if path == CHAT.path else SHORT_REPLY_BYTES
            if sum(map(len, itertools.chain(*replies))) <= short_bytes:
                return read(bodies, keep_gil)
            # Put together there, too: 5 MB take 16 ms.
            return await in_thread(read, bodies, release_gil)
        except NO_SUCH_FORM as error:
            begin = b"".join(replies[0])[:LONGEST_READ].decode("utf-8", "replace")
            text = body_summary(begin, *secrets_of(self.config)) or "empty"
            raise bad_reply(f"a reply without completions: {text}") from error

    # -- for the framework's own methods -----------------------------------------------

    async def _tokens_and_logprobs_completion_wrapper(self, **fields: Any) -> Any:
        text, tokens = fields.pop("prompt", None), fields.pop("input_ids", None)
        tokens = self.tokenizer.encode(text) if tokens is None else tokens
        tokens = with_one_bos(self.tokenizer, tokens)
        fields.pop("model", None)
        if self.route is None:
            await self.probe()
        if self.route is None or self.route is CHAT:
            raise bad_reply(f"{self.config.base_url} gives no token ids")
        rows = await self.ask(self.route, Prompt([], tokens, False), fields)
        ids, logprobs = [row.tokens for row in rows], [row.logprobs for row in rows]
        return tokens, ids, logprobs, [row.finish_reason for row in rows]

    async def _chat_completion_wrapper(self, **fields: Any) -> ChatCompletion:
        def read(bodies: Iterator[bytes], _: Call) -> ChatCompletion:
            chats = [json.loads(body) for body in bodies]
            choices = [choice for chat in chats for choice in chat["choices"]]
            return ChatCompletion.construct(**{**chats[0], "choices": choices})

        def body(n: int) -> Body:
            return self._chat_body(fields | {"n": n})

        return await self._query(CHAT.path, body, read, fields.get("n", 1))

    async def _completion_wrapper(self, **fields: Any) -> Any:
        raise NotImplementedError("query for tokens or for a chat")

    async def close(self) -> None:
        """Stop what is under way and close the connections; may be called twice."""
        if self.check_task is not None:
            self.check_task.cancel()
            await asyncio.wait([self.check_task], timeout=CLOSE_GRACE_S)
        await self.connection.close()
