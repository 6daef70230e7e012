"""The framework's clients, with token ids from whatever route a server has for them.

Mends B23 and B25 of docs/host_defects.md. What is asked of `/generate` is what the
framework's own classes ask; differs:

    connections     kept open, instead of one opened and closed for every request
    replies         read off the event loop where they are long
    timings         the newest `rolling_buffer_length` are kept, instead of all
    health          of every type asked at `/health`; bounded in time
    openai, trl     give token ids as well, where the server has them

Choosing a server and its limits stay the framework's; guarded_server.py says what is
tried again, token_routes.py how token ids are asked for.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
from collections import deque
from collections.abc import Iterable, Mapping
from contextvars import Context
from typing import Any, ClassVar

import aiohttp
import msgspec
import openai
import orjson
from atroposlib.envs.server_handling.openai_server import OpenAIServer
from atroposlib.envs.server_handling.server_baseline import APIServer
from atroposlib.envs.server_handling.sglang_server import SGLangServer
from atroposlib.envs.server_handling.trl_vllm_server import TrlVllmServer
from atroposlib.envs.server_handling.vllm_server import VLLMServer

from rg_env import patience
from rg_env.inference.bounded_bodies import (
    MEBIBYTE,
    MOST_BYTES_OF_A_CHAT,
    MOST_BYTES_OF_A_TOKEN,
    MOST_TOKENS,
    read_bounded,
)
from rg_env.inference.chat_replies import read_chat
from rg_env.inference.connection_faults import describe
from rg_env.inference.guarded_server import (
    TRIAL_TEXT,
    TRIAL_TIMEOUT_S,
    GuardedServer,
)
from rg_env.inference.native_replies import Generated, NativeReply, is_usable
from rg_env.inference.reply_arrival import reply_has_come
from rg_env.inference.reply_reasons import (
    ABOUT_THE_REQUEST,
    FORBIDDEN,
    MAX_COMPLETION_TOKENS,
    Reply,
    UnusableReplyError,
    is_about_the_model,
    is_no_route,
    parsed,
    read_refusal,
    refusal_behind,
    told_error,
    wants_another_limit,
)
from rg_env.inference.route_probe import (
    PROBE_SAMPLING,
    NoRouteError,
    RouteFault,
    UnfitRouteError,
    check_ends,
    check_prompt,
    check_texts,
    check_tokens,
)
from rg_env.inference.server_extras import (
    extra_body_of,
    headers_of,
    sampling_extra_of,
    secrets_of,
)
from rg_env.inference.token_replies import MissingInReplyError
from rg_env.inference.token_routes import ATROPOS, ROUTES, SGLANG, TokenRoute, url_of
from rg_env.off_loop import breathe, off_loop

logger = logging.getLogger(__name__)

SHORT_REPLY_BYTES = 2**17
"""A reply up to here is read in half a millisecond, in place."""

KEEP_ALIVE_S = 3.0
"""Less than the 5 s after which these servers close an idle connection: a request that
goes out while its connection is being closed is lost."""

READ_BUFFER_BYTES = 2**20

REASON_BYTES = 2**14
"""Read of a reply that refuses a request."""

JSON_CONTENT = {"Content-Type": "application/json"}

FIRST_SERVER_FAULT = 500
HEALTH_EVERY_S = 1.0
HEALTH_TIMEOUT_S = 10.0
MISSES_IN_A_ROW = 3
"""Health checks without an answer after which what hangs at the server is given up."""


NO_SUCH_REPLY = (
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
)
"""What reading a reply raises that is of another form."""


async def _refuse_error(reply: aiohttp.ClientResponse) -> None:
    """Raise what aiohttp raises for a status, with what the reply says of it."""
    if reply.ok:
        return
    said = await reply.content.read(REASON_BYTES)
    raise aiohttp.ClientResponseError(
        reply.request_info,
        reply.history,
        status=reply.status,
        message=said.decode("utf-8", "replace") or reply.reason or "",
        headers=reply.headers,
    )


def _joined(read: list[Generated]) -> Generated:
    """Return the completions of several replies as those of one."""
    tokens, logprobs, ends = zip(*read, strict=True)
    join = itertools.chain.from_iterable
    return Generated(list(join(tokens)), list(join(logprobs)), list(join(ends)))


def _have_seen(done: asyncio.Future[Any]) -> None:
    """Look at what a future came to, which nobody may be waiting for any more."""
    if not done.cancelled():
        done.exception()


class RecentTimings(APIServer):
    """A client that remembers its newest timings."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Build the framework's client."""
        super().__init__(*args, **kwargs)
        newest = self.config.rolling_buffer_length
        self.request_timings: deque[float] = deque(maxlen=newest)
        self.attempts_list: deque[int] = deque(maxlen=newest)
        self.eval_request_timings: deque[float] = deque(maxlen=newest)
        self.eval_attempts_list: deque[int] = deque(maxlen=newest)


class NativeServer(GuardedServer, RecentTimings):
    """A client that asks for token ids.

    Attributes:
        tokenizer: Of the model.
        chats: Whether messages are what it is asked with, unless it is to train.
    """

    tokenizer: Any
    chats: ClassVar[bool] = False
    is_openai: ClassVar[bool] = False
    routes: ClassVar[tuple[TokenRoute, ...]]
    first_route: ClassVar[TokenRoute | None] = None
    """The one that is asked without having been tried."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Build the framework's client; connects at the first request."""
        super().__init__(*args, **kwargs)
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._route = self.first_route
        self._finding: asyncio.Future[TokenRoute] | None = None
        self._gives_tokens = not self.chats
        self._ignores_n: bool = self.config.n_kwarg_is_ignored

    # -- one request -------------------------------------------------------------------

    async def _read(self, route: TokenRoute, blocks: list[bytes]) -> Generated:
        """Read the body of a reply, a long one off the event loop.

        There, too, it is put together: one of 5 MB takes 16 ms.
        """
        if sum(map(len, blocks)) <= SHORT_REPLY_BYTES:
            return route.read(b"".join(blocks))
        return await off_loop(lambda: route.read(b"".join(blocks), breathe))

    def _take_prompt(self, arguments: dict[str, Any]) -> list[int]:
        """Remove the prompt from the arguments and return its tokens, with one BOS."""
        text = arguments.pop("prompt", None)
        tokens: list[int] | None = arguments.pop("input_ids", None)
        if tokens is None:
            tokens = self.tokenizer.encode(text)
        if len(tokens) >= 2 and tokens[0] == self.tokenizer.bos_token_id == tokens[1]:
            tokens = tokens[1:]
        return tokens

    def _connections(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            self._loop = loop
            self._session = aiohttp.ClientSession(
                # The semaphores of the framework limit what is under way.
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
                read_bufsize=READ_BUFFER_BYTES,
                trust_env=self.is_openai,  # a proxy, as its chat client does
            )
        return self._session

    def _url(self, path: str) -> str:
        return url_of(self.config.base_url, path, is_openai=self.is_openai)

    def _headers(self) -> dict[str, str]:
        key = self.config.api_key
        own = {"Authorization": f"Bearer {key}"} if key else {}
        return own | headers_of(self.config)

    async def _post(
        self, route: TokenRoute, prompt: list[int], sampling: dict[str, Any]
    ) -> list[bytes]:
        """Ask a route; return the body of its reply."""
        extra = sampling_extra_of(self.config)
        body = route.body(prompt, sampling, self.config.model_name, extra)
        async with self._connections().post(
            self._url(route.path),
            data=orjson.dumps(body),
            headers=self._headers() | JSON_CONTENT,
            timeout=aiohttp.ClientTimeout(total=self.config.timeout),
        ) as response:
            await _refuse_error(response)
            tokens = sampling.get("n", 1) * sampling.get("max_tokens", MOST_TOKENS)
            most_bytes = MEBIBYTE + MOST_BYTES_OF_A_TOKEN * (len(prompt) + tokens)
            blocks = await read_bounded(response.content.iter_any(), most_bytes)
        if sum(map(len, blocks)) <= REASON_BYTES:
            error = told_error(parsed(b"".join(blocks)))
            if error is not None:
                raise ValueError(error)
        return blocks

    async def _ask(
        self, route: TokenRoute, prompt: list[int], sampling: dict[str, Any]
    ) -> list[list[bytes]]:
        """Ask a route; return the bodies of its replies, as a rule of one."""
        n = sampling.get("n", 1)
        if not self._ignores_n or n == 1:
            return [await self._post(route, prompt, sampling)]
        one = {**sampling, "n": 1}
        asking = [
            asyncio.ensure_future(self._post(route, prompt, one)) for _ in range(n)
        ]
        try:
            return list(await asyncio.gather(*asking))
        finally:
            for request in asking:
                request.cancel()

    async def _tokens_and_logprobs_completion_wrapper(
        self, **kwargs: Any
    ) -> NativeReply:
        """Ask once; returns prompt tokens, tokens, logprobs and finish reasons."""
        self._gives_tokens = True
        prompt = self._take_prompt(kwargs)
        kwargs.pop("model", None)
        route = self._route or await self.find_route()
        try:
            replies = await self._ask(route, prompt, kwargs)
        except aiohttp.ClientResponseError as error:
            if not self._has_lost(route, error):
                raise
            try:
                route = await self.find_route(anew=True)
            except NoRouteError:
                raise error from None
            replies = await self._ask(route, prompt, kwargs)
        await reply_has_come()
        read = [await self._read(route, blocks) for blocks in replies]
        return prompt, *self._with_ends(_joined(read), kwargs)

    def _has_lost(self, route: TokenRoute, error: aiohttp.ClientResponseError) -> bool:
        """Say whether a refusal means that the server has another route by now."""
        about_model = is_about_the_model(read_refusal(error.status, error.message))
        return len(self.routes) > 1 and is_no_route(error.status) and not about_model

    def _with_ends(
        self, generated: Generated, sampling: Mapping[str, Any]
    ) -> Generated:
        """Add why completions ended, where a server does not say."""
        return generated

    # -- which route -------------------------------------------------------------------

    async def find_route(self, *, anew: bool = False) -> TokenRoute:
        """Return the first route that gives what a trainer needs.

        Those who ask meanwhile wait for the same tries.

        Args:
            anew: Whether one that was found before is forgotten.

        Raises:
            NoRouteError: None does.
            Exception: The server refuses, fails or is not there.
        """
        if self._finding is None or self._finding.done():
            if self._route is not None and not anew:
                return self._route
            # Not in the context of the request that happens to begin it.
            self._finding = Context().run(asyncio.ensure_future, self._try_routes())
            self._finding.add_done_callback(_have_seen)
        return await asyncio.shield(self._finding)

    async def _try_routes(self) -> TokenRoute:
        faults = []
        for route in self.routes:
            try:
                await asyncio.wait_for(self._try_route(route), TRIAL_TIMEOUT_S)
            except aiohttp.ClientResponseError as error:
                reply = read_refusal(
                    error.status, error.message, *secrets_of(self.config)
                )
                if not is_of_the_route(reply):
                    raise
                told = f"{reply.status} {reply.said}".rstrip()
                faults.append(RouteFault(route, told, error))
            except UnusableReplyError:  # broken off, which may pass
                raise
            except (MissingInReplyError, UnfitRouteError) as error:
                faults.append(RouteFault(route, str(error), error))
            except NO_SUCH_REPLY as error:
                faults.append(RouteFault(route, "a reply of another form", error))
            else:
                self._route = route
                return route
        if all(getattr(f.error, "status", None) == FORBIDDEN for f in faults):
            raise faults[0].error  # of the key
        raise NoRouteError(faults)

    async def _try_route(self, route: TokenRoute) -> None:
        """Ask a route for little; raises where the reply is not of use."""
        prompt = self.tokenizer.encode(TRIAL_TEXT)
        body = b"".join(await self._post(route, prompt, dict(PROBE_SAMPLING)))
        generated = self._with_ends(route.read(body), PROBE_SAMPLING)
        check_tokens(generated)
        check_ends(generated)
        self._refuse_unusable((prompt, *generated))
        told = route.tell(orjson.loads(body))
        check_prompt(prompt, told)
        check_texts(self.tokenizer, generated, told)
        if len(generated.tokens) < PROBE_SAMPLING["n"] and not self._ignores_n:
            logger.warning(
                "%s returns one completion whatever n is: it is asked as often as there"
                " are rollouts",
                self.config.base_url,
            )
            self._ignores_n = True

    # -- health ------------------------------------------------------------------------

    async def check_server_status_task(self, chat_completion: bool = True) -> None:
        """Look at the server's health for ever; one that is gone is left out."""
        missed = 0
        while True:
            try:
                await self._check_health()
                if missed:
                    self.circuit.hasten_trial()
                missed = 0
            except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
                missed += 1
                if missed >= MISSES_IN_A_ROW:
                    self.lose(describe(error, *secrets_of(self.config)))
            await asyncio.sleep(HEALTH_EVERY_S)

    async def _check_health(self) -> None:
        async with self._connections().get(
            self._url("/health"),
            headers=self._headers(),
            timeout=aiohttp.ClientTimeout(total=HEALTH_TIMEOUT_S),
        ) as response:
            # Another status is that of a server which has no such page.
            if response.status >= FIRST_SERVER_FAULT:
                response.raise_for_status()

    async def _ask_little(self) -> None:
        if self.config.health_check:
            await self._check_health()
        if not self._gives_tokens:
            await super()._ask_little()
            return
        self._route = self.first_route  # it may have come back with another version
        tokens = self.tokenizer.encode(TRIAL_TEXT)
        reply = await self._tokens_and_logprobs_completion_wrapper(
            input_ids=tokens, n=1, max_tokens=1
        )
        self._refuse_unusable(reply)

    def _refuse_unusable(self, reply: Any) -> None:
        if isinstance(reply, tuple) and not any(map(is_usable, *reply[1:])):
            raise UnusableReplyError(f"none of {len(reply[1])} completions is usable")

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        if self._finding is not None and not self._finding.done():
            self._finding.cancel()
            await asyncio.gather(self._finding, return_exceptions=True)
        await super().close()
        if self._session is not None:
            await self._session.close()
            self._session = None


class NativeVllmServer(NativeServer, VLLMServer):
    """The framework's client of vLLM: its example trainer's server, or a stock one."""

    routes = ROUTES["vllm"]
    first_route = ATROPOS


class NativeSglangServer(NativeServer, SGLangServer):
    """The framework's client of SGLang."""

    routes = ROUTES["sglang"]
    first_route = SGLANG


class EndpointServer(NativeServer):
    """A client of an endpoint of the OpenAI kind, a stock vLLM among them.

    The framework refuses to train with a client that is its `OpenAIServer`, whatever
    the server gives, so this one is none and takes over what that one does in a chat.
    """

    chats = True
    is_openai = True
    routes = ROUTES["openai"]

    def __init__(self, config: Any, reasoning_config: Any = None) -> None:
        """Build the client, which tries once; `Inference` gives it its tokenizer."""
        self.openai = openai.AsyncClient(
            api_key=config.api_key,
            base_url=config.base_url,
            timeout=config.timeout,
            default_headers=headers_of(config),
            max_retries=0,
        )
        self._limit_name = "max_tokens"
        super().__init__(config, reasoning_config=reasoning_config)

    async def _chat_completion_wrapper(self, **kwargs: Any) -> Any:
        extra = {**extra_body_of(self.config), **(kwargs.get("extra_body") or {})}
        if extra:
            kwargs["extra_body"] = extra
        limit = kwargs.pop("max_tokens", None)
        if limit is not None:
            kwargs[self._limit_name] = limit
        try:
            return await self._chats(kwargs)
        except openai.BadRequestError as error:
            reply = refusal_behind(error, *secrets_of(self.config))
            if "max_tokens" not in kwargs or not wants_another_limit(reply):
                raise
        self._limit_name = MAX_COMPLETION_TOKENS
        kwargs[self._limit_name] = kwargs.pop("max_tokens")
        return await self._chats(kwargs)

    async def _chats(self, arguments: dict[str, Any]) -> Any:
        """Ask once, or as often as there are choices where n is ignored."""
        if not self._ignores_n:
            return await self._one_chat(arguments)
        one = {**arguments, "n": 1}
        asking = (self._one_chat(one) for _ in range(arguments.get("n", 1)))
        first, *others = await asyncio.gather(*asking)
        for other in others:
            first.choices += other.choices
        return first

    async def _one_chat(self, arguments: dict[str, Any]) -> Any:
        chats = self.openai.chat.completions.with_streaming_response
        async with chats.create(**arguments) as response:
            blocks = await read_bounded(response.iter_bytes(), MOST_BYTES_OF_A_CHAT)
        return read_chat(b"".join(blocks))

    _completion_wrapper = OpenAIServer._completion_wrapper

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        await super().close()
        await self.openai.close()


class TrlServer(NativeServer, TrlVllmServer):
    """The framework's client of TRL's server."""

    chats = True
    routes = ROUTES["trl"]

    async def _chat_completion_wrapper(self, **kwargs: Any) -> Any:
        return await super()._chat_completion_wrapper(
            **extra_body_of(self.config), **kwargs
        )

    def _with_ends(
        self, generated: Generated, sampling: Mapping[str, Any]
    ) -> Generated:
        end, limit = self.tokenizer.eos_token_id, sampling.get("max_tokens", math.inf)
        ends = [
            "length" if len(ids) >= limit and ids[-1] != end else "stop"
            for ids in generated.tokens
        ]
        return generated._replace(finish_reasons=ends)


SERVER_CLASSES: dict[str, type[NativeServer]] = {
    "vllm": NativeVllmServer,
    "sglang": NativeSglangServer,
    "openai": EndpointServer,
    "trl": TrlServer,
}
"""By `server_type`."""


def client_of(config: Any, reasoning_config: Any = None) -> NativeServer:
    """Return our client of a server; the framework calls this as it would a class."""
    cls = SERVER_CLASSES[config.server_type]
    return cls(config, reasoning_config=reasoning_config)


def is_of_the_route(reply: Reply) -> bool:
    """Say whether a refusal is of a route alone, so that another may be tried."""
    if is_about_the_model(reply):
        return False
    # vLLM answers 403 at a route that is turned off, and so does a gateway.
    return reply.status in ABOUT_THE_REQUEST | {FORBIDDEN} or is_no_route(reply.status)


async def close_servers(servers: Iterable[Any]) -> None:
    """End the health checks of clients and close their connections."""
    clients = list(servers)
    checks = [getattr(client, "check_task", None) for client in clients]
    running = [check for check in checks if check is not None and not check.done()]
    for check in running:
        check.cancel()
    if running:
        await asyncio.wait(running, timeout=patience.CLOSE_GRACE_S)
    for client in clients:
        if isinstance(client, GuardedServer):
            await client.close()
        elif hasattr(client, "openai"):  # a subclass named its own client
            await client.openai.close()
