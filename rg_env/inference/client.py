"""The client of one inference server, and its variants by the type of server.

Mends B22, B23 and B25 of docs/host_defects.md: a request is made once, and the next try
is that of `Servers`, at whatever server is chosen then; what hangs at a server that is
gone is queried elsewhere; connections are kept open; token ids come by whatever route
the server has; health is checked at every type's `/health`, within a time; and the
newest `rolling_buffer_length` timings are kept. What is sent is what the framework's
own classes send.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from atroposlib.envs.server_handling.server_baseline import APIServer
from atroposlib.envs.server_handling.sglang_server import SGLangServer
from atroposlib.envs.server_handling.vllm_server import VLLMServer
from openai.types import Completion as TextCompletion
from openai.types.chat import ChatCompletion

from rg_env import patience
from rg_env.inference.completions import (
    Completion,
    Sampling,
    check_some_usable,
    from_chat,
    from_tokens,
)
from rg_env.inference.connection import (
    MEBIBYTE,
    Connection,
    extra_body_of,
    sampling_extra_of,
    secrets_of,
)
from rg_env.inference.probe import ProbeRequest, find_route, greeting, no_route
from rg_env.inference.prompts import Prompt, with_one_bos
from rg_env.inference.request_failures import (
    LONGEST_READ,
    SILENCE,
    Failure,
    RequestFailedError,
    bad_reply,
    body_summary,
    failure_of,
)
from rg_env.inference.routes import (
    ATROPOS,
    CHAT,
    COMPLETIONS,
    NO_SUCH_FORM,
    SGLANG,
    Body,
    TokenRoute,
    chat_of,
)
from rg_env.inference.server_state import ServerState
from rg_env.off_loop import keep_gil, off_loop, release_gil

logger = logging.getLogger(__name__)

T = TypeVar("T")
ReleaseGil = Callable[[], None]

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


class ServerLeftOutError(ConnectionError):
    """The server is not queried now; another may be."""


class Client(APIServer):
    """A client for any inference server, which also knows when not to query it.

    Attributes:
        chats: Whether the server is sent messages, unless token ids are needed.
        routes: At which it is queried for token ids, the likeliest first.
        on_failure: Called for each request that failed, including probes.
        needs_tokens: Whether the completions go to a trainer.
        is_probed: Whether a probe has found the route; None of a chat.
    """

    chats: ClassVar[bool] = False
    routes: ClassVar[tuple[TokenRoute, ...]]
    tokenizer: Any
    # What the framework chooses a server by; only our state decides it.
    server_healthy = property(lambda self: self.state.admits, lambda self, _: None)

    def __init__(self, config: Any, reasoning_config: Any = None) -> None:
        self.state = ServerState()
        super().__init__(config, reasoning_config=reasoning_config)
        for name in ("request_timings", "attempts_list"):
            for each in (name, f"eval_{name}"):
                setattr(self, each, deque(maxlen=config.rolling_buffer_length))
        self.connection = Connection(config, is_openai=self.chats)
        self.on_failure: Callable[[Client, Failure], None] = lambda *_: None
        self.needs_tokens = self.is_probed = False
        self.probe_request: ProbeRequest | None = None
        self.route: TokenRoute | None = None
        self._limit_name = MAX_TOKENS
        self._ignores_n: bool = config.n_kwarg_is_ignored
        self._tasks: dict[str, asyncio.Future[None]] = {}
        self._under_way: set[asyncio.Future[Any]] = set()

    # -- whether it is queried ---------------------------------------------------------

    def note_failure(self, error: Exception) -> None:
        """A request failed."""
        failure = failure_of(error, *secrets_of(self.config))
        if failure.is_absence:
            self.is_probed = False  # it has come back as another server
        # What is under way there may still be answered: only `leave_out` cancels it.
        self.state.note_failure(failure)
        if self.state.is_out:
            self.recover()
        self.on_failure(self, failure)

    def leave_out(self, failure: Failure) -> None:
        """Stop using a server that is gone, and cancel the requests that hang there."""
        self.state.leave_out(failure)
        for request in self._under_way:
            request.cancel()
        self.recover()

    def recover(self) -> None:
        """Probe the server until it passes, after pauses, and use it then."""
        self._keep_up("recovery", self._recover)

    def _keep_up(
        self, name: str, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        """Begin what goes on beside the requests, unless it is going on."""
        if name not in self._tasks or self._tasks[name].done():
            self._tasks[name] = asyncio.ensure_future(work())

    async def _recover(self) -> None:
        pause_s = self.state.next_pause_s() if self.state.is_out else 0.0
        while True:
            await asyncio.sleep(pause_s)
            hanging = asyncio.get_running_loop().call_later(
                patience.PROBE_SILENT_AFTER_S, self.leave_out, SILENCE
            )
            try:
                if self.is_probed and self.config.health_check:
                    await self.connection.check_health()
                await asyncio.wait_for(self.probe(), patience.PROBE_WITHIN_S)
                return self.state.take_back()
            except Exception as error:  # noqa: BLE001 - as many as ways to be down
                self.note_failure(error)
                if not self.state.is_resting:
                    self.leave_out(self.state.failure)
            finally:
                hanging.cancel()
            pause_s = self.state.next_pause_s()

    async def probe(self) -> None:
        """Find out how to query the server, which may have changed since the last."""
        request = self.probe_request or greeting(self.tokenizer)
        route, is_known = await find_route(self, request), self.is_probed
        if not is_known or route != self.route:
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
                if missed >= patience.HEALTH_MISSES_IN_A_ROW:
                    self.leave_out(error.failure)
            await asyncio.sleep(patience.HEALTH_EVERY_S)

    # -- completions -------------------------------------------------------------------

    async def complete(
        self,
        prompt: Prompt,
        n: int,
        sampling: Sampling,
        on_reply: Callable[[], None] | None = None,
    ) -> list[Completion]:
        """Query a server once that was probed, unless it is lost meanwhile."""
        if self.config.health_check:
            self._keep_up("health", self.check_server_status_task)
        trains = sampling.split == "train"
        async with self.sem if trains else self.eval_sem:
            if not self.state.admits:
                raise ServerLeftOutError(self.state.failure.text)
            began, how = time.time(), sampling.fields | {"n": n}
            asking = asyncio.ensure_future(self.ask(self.route, prompt, how, on_reply))
            self._under_way.add(asking)
            try:
                # Awaited itself, its cancellation would look like the caller's.
                await asyncio.wait({asking})
            finally:
                self._under_way.discard(asking)
                asking.cancel()
            if asking.cancelled():  # by `leave_out`
                raise ServerLeftOutError(self.state.failure.text)
            try:
                completions = asking.result()
                check_some_usable(completions)
            except Exception as error:
                self.note_failure(error)
                raise
        self.state.note_answer()
        timings = self.request_timings if trains else self.eval_request_timings
        timings.append(time.time() - began)
        (self.attempts_list if trains else self.eval_attempts_list).append(1)
        return completions

    async def ask(
        self,
        route: TokenRoute | None,
        prompt: Prompt,
        fields: Body,
        on_reply: Callable[[], None] | None = None,
    ) -> list[Completion]:
        """Query by a route, a chat if None; return what came, whether of use or not."""
        tokenizer, tokens, model = self.tokenizer, prompt.tokens, self.config.model_name
        messages = [dict(message) for message in prompt.messages]
        extra = sampling_extra_of(self.config)

        def read(bodies: Iterator[bytes], release: ReleaseGil) -> list[Completion]:
            if route is None:
                return from_chat(tokenizer, prompt, chat_of(bodies)["choices"])
            parts = (route.read(body, model) for body in bodies)
            choices = itertools.chain.from_iterable(parts)
            return from_tokens(tokenizer, tokens, choices, release)

        def body(n: int) -> Body:
            how = fields | {"n": n}
            if route is None:
                how = self._inject_reasoning_kwargs({"messages": messages} | how)
                return self._chat_body(how)
            return route.body(list(tokens), how, model, extra)

        path, n = route.path if route else CHAT, fields.get("n", 1)
        most = (fields.get(MAX_TOKENS) or UNLIMITED_TOKENS) + len(tokens)
        completions = await self.query(path, body, read, n, most, on_reply)
        if len(completions) == 1 < n and not self._ignores_n and not self.is_probed:
            self._ignores_n = True
            logger.warning(
                "%s returns one completion whatever n is: it is queried as often as"
                " there are rollouts",
                self.config.base_url,
            )
        return completions

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
        read: Callable[[Iterator[bytes], ReleaseGil], T],
        n: int = 1,
        most_tokens: int = UNLIMITED_TOKENS,
        on_reply: Callable[[], None] | None = None,
    ) -> T:
        """Query once for `n` completions, or `n` times where the server ignores it.

        `body` makes that of a request for so many, of at most so many tokens each.
        `read` gets the replies' bodies, and what to call between two completions, and
        raises one of `NO_SUCH_FORM` where they are none.
        """
        times, at_once = (n, 1) if self._ignores_n else (1, n)
        most_bytes = ANY_REPLY_BYTES + TOKEN_BYTES * at_once * most_tokens
        requests = [
            asyncio.ensure_future(self.connection.post(path, body(at_once), most_bytes))
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
            raise no_route(self, "it gives no token ids")
        completions = await self.ask(self.route, Prompt([], tokens, False), fields)
        choices = [each.choice for each in completions if each.choice is not None]
        ids, logprobs = [c.tokens for c in choices], [c.logprobs for c in choices]
        return tokens, ids, logprobs, [c.finish_reason for c in choices]

    async def _chat_completion_wrapper(self, **fields: Any) -> ChatCompletion:
        return await self.query(
            *(CHAT, lambda n: self._chat_body(fields | {"n": n})),
            lambda bodies, _: ChatCompletion.construct(**chat_of(bodies)),
            fields.get("n", 1),
        )

    async def _completion_wrapper(self, **fields: Any) -> TextCompletion:
        return await self.query(
            *(COMPLETIONS.path, lambda _: fields),
            lambda bodies, _: TextCompletion.construct(**json.loads(next(bodies))),
        )

    async def close(self) -> None:
        """Stop what is under way and close the connections; may be called twice."""
        running = [task for task in self._tasks.values() if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=patience.CLOSE_GRACE_S)
        await self.connection.close()
        if hasattr(self, "openai"):
            await self.openai.close()


class VllmClient(Client, VLLMServer):
    """A client of vLLM: the server of Atropos' example trainer, or a stock one."""

    routes = (COMPLETIONS, ATROPOS, SGLANG)


class SglangClient(Client, SGLangServer):
    """A client of SGLang."""

    routes = (SGLANG, COMPLETIONS, ATROPOS)


class TrlClient(Client):
    """A client of TRL's server, which is a stock vLLM since TRL 1.12."""

    routes = (COMPLETIONS, SGLANG, ATROPOS)


class OpenAiClient(Client):
    """A client of an endpoint of the OpenAI kind.

    The framework refuses to train with a client that is its `OpenAIServer`, whatever
    the server gives, so this one is none.
    """

    chats = True
    routes = (COMPLETIONS, SGLANG, ATROPOS)


CLIENTS: dict[str, type[Client]] = {
    "vllm": VllmClient,
    "sglang": SglangClient,
    "openai": OpenAiClient,
    "trl": TrlClient,
}
"""By `server_type`."""


def client_of(config: Any, reasoning_config: Any = None) -> Client:
    """Return our client of a server; the framework calls this as it would a class."""
    return CLIENTS[config.server_type](config, reasoning_config=reasoning_config)


async def close_clients(clients: Iterable[Any]) -> None:
    """End the health checks of clients and close their connections."""
    for client in clients:
        if getattr(client, "check_task", None) is not None:
            client.check_task.cancel()
        if isinstance(client, Client):
            await client.close()
        elif hasattr(client, "openai"):  # a subclass named its own client
            await client.openai.close()
