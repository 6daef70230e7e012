"""The framework's clients of vLLM and SGLang, with a `/generate` that holds nobody up.

Mends B23 of docs/host_defects.md. What they send and return is what the framework's own
classes send and return; differs:

    connections     kept open, instead of one opened and closed for every request
    replies         read by native_replies.py, long ones off the event loop
    timings         the newest `rolling_buffer_length` are kept, instead of all
    health          of SGLang as of vLLM asked at `/health`; bounded in time

Choosing a server and its limits stay the framework's; guarded_server.py says what is
tried again.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import aiohttp
import orjson
from atroposlib.envs.server_handling.openai_server import OpenAIServer
from atroposlib.envs.server_handling.server_baseline import APIServer
from atroposlib.envs.server_handling.sglang_server import SGLangServer
from atroposlib.envs.server_handling.trl_vllm_server import TrlVllmServer
from atroposlib.envs.server_handling.vllm_server import VLLMServer

from rg_env import patience
from rg_env.inference.connection_faults import describe
from rg_env.inference.guarded_server import TRIAL_TEXT, GuardedServer
from rg_env.inference.native_replies import (
    Generated,
    NativeReply,
    is_usable,
    read_sglang,
    read_vllm,
)
from rg_env.inference.reply_arrival import reply_has_come
from rg_env.off_loop import breathe, no_breath, off_loop

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


class UnusableReplyError(ValueError):
    """Not one completion of a reply is of use."""


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
    """A client of a server's own `/generate`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Build the framework's client; connects at the first request."""
        super().__init__(*args, **kwargs)
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @abstractmethod
    def _request(self, prompt: list[int], sampling: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a request."""

    @staticmethod
    @abstractmethod
    def _read_body(body: bytes, breathe: Callable[[], None] = no_breath) -> Generated:
        """Read the body of a reply."""

    async def _read(self, blocks: list[bytes]) -> Generated:
        """Read the body of a reply, a long one off the event loop.

        There, too, it is put together: one of 5 MB takes 16 ms.
        """
        if sum(map(len, blocks)) <= SHORT_REPLY_BYTES:
            return self._read_body(b"".join(blocks))
        return await off_loop(lambda: self._read_body(b"".join(blocks), breathe))

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
            )
        return self._session

    def _url(self, path: str) -> str:
        return f"{self.config.base_url.replace('/v1', '')}{path}"

    def _headers(self) -> dict[str, str]:
        key = self.config.api_key
        return {"Authorization": f"Bearer {key}"} if key else {}

    async def check_server_status_task(self, chat_completion: bool = True) -> None:
        """Look at the server's health for ever; one that is gone is left out."""
        missed = 0
        while True:
            try:
                await self._check_health()
                missed = 0
            except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
                missed += 1
                if missed >= MISSES_IN_A_ROW:
                    self.lose(describe(error))
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
        tokens = self.tokenizer.encode(TRIAL_TEXT)
        reply = await self._tokens_and_logprobs_completion_wrapper(
            input_ids=tokens, n=1, max_tokens=1
        )
        self._refuse_unusable(reply)

    def _refuse_unusable(self, reply: NativeReply) -> None:
        if not any(map(is_usable, *reply[1:])):
            raise UnusableReplyError(f"none of {len(reply[1])} completions is usable")

    async def _tokens_and_logprobs_completion_wrapper(
        self, **kwargs: Any
    ) -> NativeReply:
        """Ask once; returns prompt tokens, tokens, logprobs and finish reasons."""
        prompt = self._take_prompt(kwargs)
        kwargs.pop("model", None)
        async with self._connections().post(
            self._url("/generate"),
            data=orjson.dumps(self._request(prompt, kwargs)),
            headers=self._headers() | JSON_CONTENT,
            timeout=aiohttp.ClientTimeout(total=self.config.timeout),
        ) as response:
            await _refuse_error(response)
            blocks = [block async for block in response.content.iter_any()]
        await reply_has_come()
        return prompt, *await self._read(blocks)

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        await super().close()
        if self._session is not None:
            await self._session.close()
            self._session = None


class NativeVllmServer(NativeServer, VLLMServer):
    """The framework's client of the vLLM server that its example trainer runs."""

    def _request(self, prompt: list[int], sampling: dict[str, Any]) -> dict[str, Any]:
        for name in ("max_new_tokens", "max_completion_tokens"):
            if name in sampling:
                sampling["max_tokens"] = sampling.pop(name)
        return {"prompt": {"prompt_token_ids": prompt}, "logprobs": 0, **sampling}

    _read_body = staticmethod(read_vllm)


class NativeSglangServer(NativeServer, SGLangServer):
    """The framework's client of SGLang."""

    def _request(self, prompt: list[int], sampling: dict[str, Any]) -> dict[str, Any]:
        if "max_tokens" in sampling:
            sampling["max_new_tokens"] = sampling.pop("max_tokens")
        return {
            "input_ids": prompt,
            "sampling_params": sampling,
            "return_logprob": True,
            "return_text_in_logprobs": False,
        }

    _read_body = staticmethod(read_sglang)


class TextServer(GuardedServer, RecentTimings, OpenAIServer):
    """The framework's client of an endpoint of the OpenAI kind."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Build the framework's client, which tries once."""
        super().__init__(*args, **kwargs)
        self.openai.max_retries = 0

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        await super().close()
        await self.openai.close()


class TrlServer(GuardedServer, RecentTimings, TrlVllmServer):
    """The framework's client of TRL's server."""


SERVER_CLASSES: dict[str, type[APIServer]] = {
    "vllm": NativeVllmServer,
    "sglang": NativeSglangServer,
    "openai": TextServer,
    "trl": TrlServer,
}
"""By `server_type`."""


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
