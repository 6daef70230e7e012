"""The client of one inference server: how it is queried, and whether it is.

Mends B22, B23 and B25 of docs/host_defects.md: a request is made once, and the next try
is that of `Servers`, at whatever server is chosen then; a server that fails is left out
until a probe passes, and what hangs at one that is gone is queried elsewhere;
connections are kept open; token ids come by whatever route the server has; health is
checked at every type's `/health`, within a time; and the newest `rolling_buffer_length`
timings are kept. What is sent is what the framework's own classes send.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar, cast

from atroposlib.envs.server_handling.server_baseline import APIServer
from atroposlib.envs.server_handling.vllm_server import AutoTokenizer
from openai.types.chat import ChatCompletion

from rg_env.inference.completions import (
    Completion,
    Prompt,
    Sampling,
    check_some_usable,
    from_chat,
    from_tokens,
    with_one_bos,
)
from rg_env.inference.connection import (
    MEBIBYTE,
    Connection,
    extra_body_of,
    sampling_extra_of,
    secrets_of,
)
from rg_env.inference.probe import ProbeRequest, find_route
from rg_env.inference.request_failures import (
    ABOUT_THE_REQUEST,
    LONGEST_READ,
    NO_SERVER,
    SILENCE,
    Failure,
    RequestFailedError,
    bad_reply,
    body_summary,
    no_reply,
)
from rg_env.inference.routes import (
    CHAT,
    NO_SUCH_FORM,
    ROUTES,
    SGLANG,
    Body,
    TokenRoute,
    chat_of,
)
from rg_env.off_loop import keep_gil, off_loop, release_gil

logger = logging.getLogger(__name__)

PROBE_WITHIN_S = 120.0
"""For a few short completions, which wait behind what the server has begun."""

PROBE_SILENT_AFTER_S = 5.0
"""Without a word to a request before that is said."""

CIRCUIT_FAILURES_IN_A_ROW = 3
CIRCUIT_FIRST_PAUSE_S, CIRCUIT_LONGEST_PAUSE_S = 1.0, 10.0
"""Between two probes of a server that is left out, or is not there yet."""

BUSY_LONGEST_REST_S = 60.0
HEALTH_EVERY_S = 1.0
HEALTH_MISSES_IN_A_ROW = 3
"""Health checks without an answer after which what hangs at the server is given up."""

CLOSE_GRACE_S = 2.0

T = TypeVar("T")
Call = Callable[[], None]

MAX_TOKENS, MAX_COMPLETION_TOKENS = "max_tokens", "max_completion_tokens"
"""The limit, and what some models want it called."""

UNLIMITED_TOKENS = 2**17
"""The limit of a completion for which none is set."""

ANY_REPLY_BYTES, TOKEN_BYTES = 16 * MEBIBYTE, 256
"""A reply may have so many bytes, and so many for each token that it may hold: vLLM
writes about 150, with its id, text and log-probability, each more than once."""

SHORT_REPLY_BYTES, SHORT_CHAT_BYTES = 2**16, 2**12
"""A reply up to here is read in about a millisecond, in place; the text of a chat is
encoded, which takes longer than decoding token ids."""

HEAD_START_S = 0.003
"""What a reply waits before it is read, so that the next request goes out first: many
groups end together where completions are equally long, and the server would wait until
all their replies have been read."""


class ServerLeftOutError(Exception):
    """The server is not queried now; another may be."""


class Client(APIServer):
    """A client of an inference server of any type.

    A single failure leaves no server out, because one item may be the reason. If a
    server passes its probe and fails again, the next pause is longer; a real answer
    resets this.

    Attributes:
        needs_tokens: Whether the completions go to a trainer.
        is_probed, is_out: Whether a probe has ever passed, and whether the server is
            left out until one passes.
        route: At which it is queried for token ids; None of a chat.
        failure: The newest; it says why the server is left out, or rests.
        has_answered: Whether a request was ever answered with something of use.
        on_failure, on_change: Called for each request that failed, probes included, and
            after the server was left out or taken back.
    """

    # What the framework chooses a server by; only our state decides it.
    server_healthy = property(lambda self: self.admits, lambda self, _: None)

    def __init__(self, config: Any, reasoning_config: Any = None) -> None:
        self.is_out, self._rests_until, self.out_since = False, 0.0, 0.0
        super().__init__(config, reasoning_config=reasoning_config)
        for name in ("request_timings", "attempts_list"):
            for each in (name, f"eval_{name}"):
                setattr(self, each, deque(maxlen=config.rolling_buffer_length))
        kind, self.tokenizer = config.server_type, cast(Any, None)
        if kind in ("vllm", "sglang"):
            self.tokenizer = AutoTokenizer.from_pretrained(config.tokenizer_name)
        # An endpoint is sent messages, unless token ids are needed.
        self.chats = kind == "openai"
        self.routes: list[TokenRoute]
        self.routes = sorted(ROUTES, key=lambda r: kind == "sglang" and r is not SGLANG)
        self.connection = Connection(config, is_openai=self.chats)
        self.on_failure: Callable[[Failure], object] = lambda _: None
        self.on_change: Call = lambda: None
        self.needs_tokens = self.is_probed = self.has_answered = False
        self.failure = NO_SERVER
        self.probe_request: ProbeRequest | None = None
        self.route: TokenRoute | None = None
        self._failures, self._pause_s = 0, CIRCUIT_FIRST_PAUSE_S
        self._limit_name = MAX_TOKENS
        self._ignores_n: bool = config.n_kwarg_is_ignored
        self._recovery: asyncio.Future[None] | None = None
        self._under_way: set[asyncio.Future[Any]] = set()

    # -- whether it is queried ---------------------------------------------------------

    @property
    def is_resting(self) -> bool:
        """Whether the server is there, and left alone because it wants that."""
        return not self.is_out and time.monotonic() < self._rests_until

    @property
    def admits(self) -> bool:
        """Whether the server is to be queried now."""
        return not self.is_out and not self.is_resting

    def note_failure(self, failure: Failure) -> None:
        """Decide what a failed request says of the server: nothing, a rest, its end."""
        self.failure = failure
        if failure.rest_s is not None:
            rest_s = min(failure.rest_s, BUSY_LONGEST_REST_S)
            self._rests_until = max(self._rests_until, time.monotonic() + rest_s)
        elif failure.status not in ABOUT_THE_REQUEST:
            self._failures += 1
            is_enough = self._failures >= CIRCUIT_FAILURES_IN_A_ROW
            # One without the path has come back as another server.
            if is_enough or (failure.is_absence and self.is_probed):
                self.leave_out(failure)
        self.on_failure(failure)

    def leave_out(self, failure: Failure, *, is_gone: bool = False) -> None:
        """Stop using the server until a probe passes.

        If it is gone, the requests that hang there are cancelled; else they may still
        be answered.
        """
        for request in self._under_way if is_gone else ():
            request.cancel()
        if not self.is_out:
            self.failure, self.is_out, self.out_since = failure, True, time.monotonic()
            self.on_change()
        self.recover()

    def _take_back(self) -> None:
        self._failures = 0
        if self.is_out:
            self.is_out = False
            self.on_change()

    def recover(self) -> None:
        """Probe the server until it passes, after pauses, and use it then."""
        self._recovery = _kept_up(self._recovery, self._recover)

    async def _recover(self) -> None:
        loop = asyncio.get_running_loop()
        leave_out = partial(self.leave_out, SILENCE, is_gone=True)
        while True:
            if not self.admits:
                # With jitter: many environments may wait for one server that starts.
                pause_s = self._pause_s * random.uniform(0.75, 1.25)
                longest_s = CIRCUIT_LONGEST_PAUSE_S
                self._pause_s = min(2 * self._pause_s, longest_s)
                rest_s = self._rests_until - time.monotonic()
                await asyncio.sleep(max(pause_s, rest_s))
            hanging = loop.call_later(PROBE_SILENT_AFTER_S, leave_out)
            try:
                await asyncio.wait_for(self.probe(), PROBE_WITHIN_S)
                return self._take_back()
            except Exception as error:  # noqa: BLE001 - as many as ways to be down
                self.note_failure(self._failure_of(error))
                if not self.is_resting:
                    self.leave_out(self.failure)
            finally:
                hanging.cancel()

    def _failure_of(self, error: Exception) -> Failure:
        if isinstance(error, RequestFailedError):
            return error.failure
        return no_reply(error, *secrets_of(self.config))

    async def probe(self) -> None:
        """Find out how to query the server, which may have changed since the last."""
        request = self.probe_request
        if request is None:
            tokens = self.tokenizer.encode("hi")
            messages = [{"role": "user", "content": "hi"}]
            request = ProbeRequest(Prompt(messages, tokens, False), {"n": 2})
        route = await find_route(self, request)
        if not self.is_probed or route != self.route:
            how = f"token ids from {route.path}" if route else "queried as a chat"
            logger.info("inference at %s: %s", self.config.base_url, how)
        self.route, self.is_probed = route, True

    async def check_server_status_task(self, chat_completion: bool = True) -> None:
        """Check the server's health for ever; one that is gone is left out."""
        missed = 0
        while True:
            try:
                await self.connection.check_health()
                missed = 0
            except RequestFailedError as error:
                missed += 1
                if missed >= HEALTH_MISSES_IN_A_ROW:
                    self.leave_out(error.failure, is_gone=True)
            await asyncio.sleep(HEALTH_EVERY_S)

    # -- completions -------------------------------------------------------------------

    async def complete(
        self, prompt: Prompt, n: int, sampling: Sampling, on_reply: Call | None = None
    ) -> list[Completion]:
        """Query a server once that was probed.

        Raises:
            RequestFailedError: It fails, or no completion is usable.
            ServerLeftOutError: It was left out meanwhile.
        """
        if self.config.health_check:
            check = self.check_server_status_task
            self.check_task: asyncio.Future[None] = _kept_up(self.check_task, check)
        fields = {**vars(sampling), "n": n}
        trains = fields.pop("split") == "train"
        async with self.sem if trains else self.eval_sem:
            if not self.admits:
                raise ServerLeftOutError(self.failure.text)
            began, asking = time.time(), self.ask(self.route, prompt, fields, on_reply)
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
        self.has_answered, self._pause_s = True, CIRCUIT_FIRST_PAUSE_S
        self._take_back()
        timings = self.request_timings if trains else self.eval_request_timings
        timings.append(time.time() - began)
        (self.attempts_list if trains else self.eval_attempts_list).append(1)
        return completions

    async def ask(
        self,
        route: TokenRoute | None,
        prompt: Prompt,
        fields: Body,
        on_reply: Call | None = None,
    ) -> list[Completion]:
        """Query by a route, a chat if None; return what came, whether of use or not."""
        tokens, n = prompt.tokens, fields.get("n", 1)
        messages = [dict(message) for message in prompt.messages]

        def body(n: int) -> Body:
            if route is not None:
                return self.token_body(route, prompt, fields | {"n": n})
            how = {"messages": messages, **fields, "n": n}
            return self._chat_body(self._inject_reasoning_kwargs(how))

        def read(bodies: Iterator[bytes], release: Call) -> list[Completion]:
            if route is None:
                return from_chat(self.tokenizer, prompt, chat_of(bodies)["choices"])
            parts = (route.read(body, self.config.model_name) for body in bodies)
            choices = itertools.chain.from_iterable(parts)
            return from_tokens(self.tokenizer, tokens, choices, release)

        path = route.path if route else CHAT
        most = (fields.get(MAX_TOKENS) or UNLIMITED_TOKENS) + len(tokens)
        completions = await self.query(path, body, read, n, most, on_reply)
        if len(completions) == 1 < n and not self.is_probed:
            self._ignores_n = True
        return completions

    def token_body(self, route: TokenRoute, prompt: Prompt, fields: Body) -> Body:
        """Return the body of a request at a route of token ids."""
        model, extra = self.config.model_name, sampling_extra_of(self.config)
        return route.body(list(prompt.tokens), fields, model, extra)

    def _chat_body(self, given: Body) -> Body:
        fields = {**given}
        more = extra_body_of(self.config) | (fields.pop("extra_body", None) or {})
        if MAX_TOKENS in fields:
            fields[self._limit_name] = fields.pop(MAX_TOKENS)
        return {"model": self.config.model_name, **fields, **more}

    async def query(
        self,
        path: str,
        body: Callable[[int], Body],
        read: Callable[[Iterator[bytes], Call], T],
        n: int = 1,
        most_tokens: int = UNLIMITED_TOKENS,
        on_reply: Call | None = None,
    ) -> T:
        """Query once for `n` completions, or `n` times where the server ignores it.

        `body` makes that of a request for so many, of at most so many tokens each.
        `read` gets the bodies of the replies, and what to call between two completions;
        it raises one of `NO_SUCH_FORM` where they are none.
        """
        times, at_once = (n, 1) if self._ignores_n else (1, n)
        most_bytes = ANY_REPLY_BYTES + TOKEN_BYTES * at_once * most_tokens
        post = self.connection.post
        requests = [
            asyncio.ensure_future(post(path, body(at_once), most_bytes))
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
            short_bytes = SHORT_CHAT_BYTES if path == CHAT else SHORT_REPLY_BYTES
            if sum(map(len, itertools.chain(*replies))) <= short_bytes:
                return read(bodies, keep_gil)
            # Put together there, too: 5 MB take 16 ms.
            return await off_loop(read, bodies, release_gil)
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
        if not self.is_probed:
            await self.probe()
        if self.route is None:
            raise bad_reply(f"{self.config.base_url} gives no token ids")
        completions = await self.ask(self.route, Prompt([], tokens, False), fields)
        rows = [each.choice[:3] for each in completions if each.choice is not None]
        return tokens, *([row[i] for row in rows] for i in range(3))

    async def _chat_completion_wrapper(self, **fields: Any) -> ChatCompletion:
        return await self.query(
            *(CHAT, lambda n: self._chat_body(fields | {"n": n})),
            lambda bodies, _: ChatCompletion.construct(**chat_of(bodies)),
            fields.get("n", 1),
        )

    async def _completion_wrapper(self, **fields: Any) -> Any:
        raise NotImplementedError("query for tokens or for a chat")

    async def close(self) -> None:
        """Stop what is under way and close the connections; may be called twice."""
        tasks = [task for task in (self.check_task, self._recovery) if task]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_GRACE_S)
        await self.connection.close()


def _kept_up(
    task: asyncio.Future[None] | None, work: Callable[[], Coroutine[Any, Any, None]]
) -> asyncio.Future[None]:
    """Return a task that goes on beside the requests; a new one if it has ended."""
    return asyncio.ensure_future(work()) if task is None or task.done() else task


async def close_clients(clients: Iterable[Any]) -> None:
    """Close the clients that are ours."""
    for client in clients:
        if isinstance(client, Client):
            await client.close()
