"""Our clients of inference servers: one that does the work, and one for each type.

Mends B23 and B25 of docs/host_defects.md. What is asked is what the framework's own
classes ask; differs:

    connections     kept open; replies bounded, and read off the event loop where long
    timings         the newest `rolling_buffer_length` are kept, instead of all
    health          of every type asked at `/health`; bounded in time
    routes          every type gives token ids by whatever route its server has for them

A server is probed before anything is asked of it, and before it is taken back. Choosing
a server and its limits stay the framework's; circuit_client.py says when a server is
left out.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import aiohttp
import openai
from atroposlib.envs.server_handling.openai_server import OpenAIServer
from atroposlib.envs.server_handling.sglang_server import SGLangServer
from atroposlib.envs.server_handling.trl_vllm_server import TrlVllmServer
from atroposlib.envs.server_handling.vllm_server import VLLMServer

from rg_env import patience
from rg_env.inference.chat_replies import read_chat, why_no_answer
from rg_env.inference.circuit_client import CircuitClient
from rg_env.inference.connection import Connection
from rg_env.inference.extras import extra_body_of, headers_of, sampling_extra_of
from rg_env.inference.probe import NoRouteError, ProbeRequest, find_route
from rg_env.inference.refusals import (
    MAX_COMPLETION_TOKENS,
    refusal_behind,
    wants_another_limit,
)
from rg_env.inference.replies import (
    Generated,
    TokenReply,
    check_some_usable,
    check_usable,
    read_reply,
)
from rg_env.inference.routes import CHAT, ROUTES, Body, Sampling, TokenRoute

logger = logging.getLogger(__name__)

UNLIMITED_TOKENS = 2**17
"""Of a completion for which no limit is asked."""

HEAD_START_S = 0.003
"""What a reply waits before it is read, so that the next request goes out first: many
groups end together where completions are equally long, and the server would wait until
all their replies have been read."""

HELLO = "hi"
"""What a server is probed with when nobody has said what a run will ask."""


def _joined(read: list[Generated]) -> Generated:
    """Return the completions of several replies as those of one."""
    tokens, logprobs, ends = zip(*read, strict=True)
    join = itertools.chain.from_iterable
    return Generated(list(join(tokens)), list(join(logprobs)), list(join(ends)))


class Client(CircuitClient):
    """A client of any inference server.

    Attributes:
        chats: Whether messages are what it is asked with, unless token ids are needed.
        routes: At which it is asked for token ids, the likeliest first.
        tokenizer: Of the model.
        connection: To the server.
        needs_tokens: Whether a trainer gets what it returns.
        probe_request: What it is probed with; None for a greeting.
        is_probed: Whether it is known how the server is to be asked.
        route: At which it is asked for token ids; None where it is queried as a chat.
    """

    chats: ClassVar[bool] = False
    routes: ClassVar[tuple[TokenRoute, ...]]
    tokenizer: Any

    def __init__(self, config: Any, reasoning_config: Any = None) -> None:
        """Build the framework's client; connects at the first request."""
        super().__init__(config, reasoning_config=reasoning_config)
        newest = config.rolling_buffer_length
        self.request_timings: deque[float] = deque(maxlen=newest)
        self.attempts_list: deque[int] = deque(maxlen=newest)
        self.eval_request_timings: deque[float] = deque(maxlen=newest)
        self.eval_attempts_list: deque[int] = deque(maxlen=newest)
        self.connection = Connection(config, is_openai=self.chats)
        self.needs_tokens = False
        self.probe_request: ProbeRequest | None = None
        self.is_probed = False
        self.route: TokenRoute | None = None
        self._probing: asyncio.Future[None] | None = None
        self._limit_name = "max_tokens"

    def ask_one_by_one(self) -> None:
        """Ask as often as completions are wanted, from now on."""
        if not self.connection.ignores_n:
            self.connection.ignores_n = True
            logger.warning(
                "%s returns one completion whatever n is: it is queried as often as"
                " there are rollouts",
                self.config.base_url,
            )

    def refuse_unusable(self, reply: Any) -> None:
        """Raise where a reply is of no use at all."""
        if isinstance(reply, tuple):
            check_usable(Generated(*reply[1:]))
        else:
            check_some_usable([why_no_answer(choice) for choice in reply.choices])

    # -- token ids ---------------------------------------------------------------------

    def _take_prompt(self, arguments: dict[str, Any]) -> list[int]:
        """Remove the prompt from the arguments and return its tokens, with one BOS."""
        text = arguments.pop("prompt", None)
        tokens: list[int] | None = arguments.pop("input_ids", None)
        if tokens is None:
            tokens = self.tokenizer.encode(text)
        if len(tokens) >= 2 and tokens[0] == self.tokenizer.bos_token_id == tokens[1]:
            tokens = tokens[1:]
        return tokens

    async def ask_route(
        self, route: TokenRoute, prompt: list[int], sampling: Sampling, **more: Any
    ) -> list[list[bytes]]:
        """Ask for token ids; return the bodies of the replies, as a rule of one.

        Args:
            route: Where.
            prompt: Shape (T,).
            sampling: What is sampled with, and `n`.
            more: Further fields of the request's body.
        """
        model, extra = self.config.model_name, sampling_extra_of(self.config)
        longest = len(prompt) + sampling.get("max_tokens", UNLIMITED_TOKENS)

        def body(n: int) -> Body:
            named = {**sampling, "n": n} if "n" in sampling else sampling
            return route.body(prompt, named, model, extra) | more

        n = sampling.get("n", 1)
        return await self.connection.ask(route.path, body, n, longest)

    async def read_route(
        self, route: TokenRoute, replies: list[list[bytes]]
    ) -> Generated:
        """Read the replies of a route; raises `BadReplyError` where they are none."""
        return _joined([await read_reply(route.read, blocks) for blocks in replies])

    async def _tokens_and_logprobs_completion_wrapper(
        self, on_reply: Callable[[], None] | None = None, **kwargs: Any
    ) -> TokenReply:
        """Ask once; returns prompt tokens, tokens, logprobs and finish reasons.

        Args:
            on_reply: Called when the reply has come, before any of it is read.
            kwargs: `prompt` or `input_ids`, and what is sampled with.
        """
        prompt = self._take_prompt(kwargs)
        kwargs.pop("model", None)
        if not self.is_probed:
            await self.probe()
        route = self.route
        if route is None:
            raise NoRouteError("it gives no token ids")
        try:
            replies = await self.ask_route(route, prompt, kwargs)
        except aiohttp.ClientResponseError as error:
            refusal = refusal_behind(error)
            if refusal is not None and refusal.is_absence:
                self.is_probed = False  # it has come back as another server
            raise
        if on_reply is not None:
            on_reply()
            await asyncio.sleep(HEAD_START_S)
        return prompt, *await self.read_route(route, replies)

    # -- a chat ------------------------------------------------------------------------

    async def _chat_completion_wrapper(self, **kwargs: Any) -> Any:
        return await self.ask_chat(**kwargs)

    async def ask_chat(self, **kwargs: Any) -> Any:
        """Ask a chat once; returns what openai's client returns."""
        given = kwargs.pop("extra_body", None) or {}
        body, n = {**kwargs, **extra_body_of(self.config), **given}, kwargs.get("n", 1)
        limit_name = self._limit_name
        try:
            reply = await self._chat(body, n)
        except aiohttp.ClientResponseError as error:
            refused = wants_another_limit(refusal_behind(error))
            if not refused or limit_name not in body:
                raise
            self._limit_name = MAX_COMPLETION_TOKENS
            reply = await self._chat(body, n)
        if len(reply.choices) == 1 < n:
            self.ask_one_by_one()
            reply.choices += (await self._chat(body, n - 1)).choices
        return reply

    async def _chat(self, given: Body, n: int) -> Any:
        longest = given.get("max_tokens") or UNLIMITED_TOKENS
        names = {"max_tokens": self._limit_name}
        body = {names.get(name, name): value for name, value in given.items()}

        def of(n: int) -> Body:
            return body | {"n": n} if "n" in body else body

        replies = await self.connection.ask(CHAT, of, n, longest)
        first, *others = [await read_reply(read_chat, blocks) for blocks in replies]
        for other in others:
            first.choices += other.choices
        return first

    # -- the probe ---------------------------------------------------------------------

    async def probe(self) -> None:
        """Find out how the server is to be asked; who asks meanwhile waits for it.

        Raises:
            Exception: As `find_route`.
        """
        if self._probing is None or self._probing.done():
            self._probing = asyncio.ensure_future(self._probe())
            # Looked at, since nobody may be waiting for it any more.
            self._probing.add_done_callback(
                lambda done: done.cancelled() or done.exception()
            )
        await asyncio.shield(self._probing)

    async def _probe(self) -> None:
        request = self.probe_request
        if request is None:
            hello = [{"role": "user", "content": HELLO}]
            request = ProbeRequest(hello, self.tokenizer.encode(HELLO), {"n": 2})
        finding = find_route(self, request)
        route = await asyncio.wait_for(finding, patience.PROBE_WITHIN_S)
        if not self.is_probed or route != self.route:
            how = (
                "queried as a chat" if route is None else f"token ids from {route.path}"
            )
            logger.info("inference at %s: %s", self.config.base_url, how)
        self.route, self.is_probed = route, True

    async def try_again(self) -> None:
        """Probe a server that was left out; it may have come back as another."""
        if self.config.health_check:
            await self.connection.check_health()
        await self.probe()

    # -- health and end ----------------------------------------------------------------

    async def check_server_status_task(self, chat_completion: bool = True) -> None:
        """Look at the server's health for ever; one that is gone is left out."""
        missed = 0
        while True:
            try:
                await self.connection.check_health()
                if missed:
                    self.circuit.hasten_trial()
                missed = 0
            except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
                missed += 1
                if missed >= patience.HEALTH_MISSES_IN_A_ROW:
                    self.lose(self.describe(error))
            await asyncio.sleep(patience.HEALTH_EVERY_S)

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        if self._probing is not None and not self._probing.done():
            self._probing.cancel()
            await asyncio.gather(self._probing, return_exceptions=True)
        await super().close()
        await self.connection.close()
        if hasattr(self, "openai"):
            await self.openai.close()


class VllmClient(Client, VLLMServer):
    """The framework's client of vLLM: its example trainer's server, or a stock one."""

    routes = ROUTES["vllm"]


class SglangClient(Client, SGLangServer):
    """The framework's client of SGLang."""

    routes = ROUTES["sglang"]


class OpenAiClient(Client):
    """A client of an endpoint of the OpenAI kind.

    The framework refuses to train with a client that is its `OpenAIServer`, whatever
    the server gives, so this one is none. `Inference` gives it its tokenizer.
    """

    chats = True
    routes = ROUTES["openai"]

    def __init__(self, config: Any, reasoning_config: Any = None) -> None:
        """Build the client."""
        self.openai = openai.AsyncClient(
            api_key=config.api_key,
            base_url=config.base_url,
            timeout=config.timeout,
            default_headers=headers_of(config),
            max_retries=0,
        )
        super().__init__(config, reasoning_config=reasoning_config)

    _completion_wrapper = OpenAIServer._completion_wrapper


class TrlClient(Client, TrlVllmServer):
    """The framework's client of TRL's server, which is a stock vLLM since TRL 1.12."""

    routes = ROUTES["trl"]

    def __init__(self, config: Any, reasoning_config: Any = None) -> None:
        """Build the client, with the tokenizer that the settings name."""
        # The framework's takes the model's name for its tokenizer's.
        named = config.model_copy(update={"model_name": config.tokenizer_name})
        super().__init__(named, reasoning_config=reasoning_config)
        self.config = config


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
    clients = list(clients)
    checks = [getattr(client, "check_task", None) for client in clients]
    running = [check for check in checks if check is not None and not check.done()]
    for check in running:
        check.cancel()
    if running:
        await asyncio.wait(running, timeout=patience.CLOSE_GRACE_S)
    for client in clients:
        if isinstance(client, CircuitClient):
            await client.close()
        elif hasattr(client, "openai"):  # a subclass named its own client
            await client.openai.close()
