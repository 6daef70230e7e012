"""Completions from the inference servers: the one boundary to that network.

To train, every server is asked for token ids and log-probabilities. Otherwise those of
type vllm and sglang are, and those of type openai and trl for text: its tokens come
from our own tokenizer and it has no log-probabilities.

Whatever goes wrong with a request (refused, 500, timed out, malformed, too few
choices) becomes `InferenceFailed`. A failed request is never a wrong answer.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from atroposlib.envs.server_handling.managed_server import ManagedServer
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    RetryError,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from rg_env import patience
from rg_env.errors import RunFailed
from rg_env.inference.chat_replies import usable_choices, whole_text
from rg_env.inference.connection_faults import describe
from rg_env.inference.guarded_server import (
    GuardedServer,
    ServerLeftOutError,
    why_all_out,
)
from rg_env.inference.native_replies import NativeReply, end_of, is_usable
from rg_env.inference.native_servers import EndpointServer
from rg_env.inference.prompts import Prompt
from rg_env.inference.server_extras import secrets_of
from rg_env.off_loop import breathe, no_breath, off_loop
from rg_env.retrying import tried_again

TOKEN_TYPES = frozenset({"vllm", "sglang"})
"""Server types that are asked for token ids whatever they are for."""

PROMPT_MASK = -100
PROMPT_LOGPROB = 1.0

FEW_TOKENS = 4096
"""So many are turned into text in a millisecond, in place."""

FEW_CHARS = 2048
"""Likewise for text that is turned into tokens."""


class InferenceFailed(RunFailed):
    """The inference servers gave no usable reply; the text says what was tried."""

    about = "inference failed"


class NoServer(InferenceFailed):
    """For long no server was to be asked; the fault cannot be the item's."""


@dataclasses.dataclass(frozen=True)
class Completion:
    """One completion; `tokens`, `masks` and `logprobs` have equal lengths.

    Attributes:
        text: What the model wrote.
        finish_reason: "stop", "length" or the server's word.
        tokens: Prompt and completion.
        masks: -100 for the prompt, the token id for the completion.
        logprobs: 1.0 for the prompt; None where the server gives none.
    """

    text: str
    finish_reason: str | None
    tokens: list[int]
    masks: list[int]
    logprobs: list[float] | None


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How completions are sampled.

    Attributes:
        max_tokens: Longest completion, in tokens; at least 1.
        temperature: At least 0.
        top_p: In (0, 1].
        split: "train" or "eval": which of the server's request limits counts.
    """

    max_tokens: int
    temperature: float
    top_p: float
    split: str


def _is_usable(completion: Completion) -> bool:
    if completion.logprobs is None:
        return True
    masks, reason = completion.masks, completion.finish_reason
    # A model that says nothing still says its end, with a log-probability. Without a
    # token there is nothing to train on: a trainer fails, and an end of our own would
    # need a probability that nobody has measured.
    if not masks or masks[-1] == PROMPT_MASK or len(masks) != len(completion.tokens):
        return False
    return is_usable(completion.tokens, completion.logprobs, reason)


def _may_try_again(error: BaseException) -> bool:
    """Say whether another try is ours; a client that is not ours has made its own."""
    failed = isinstance(error, InferenceFailed) and not isinstance(error, NoServer)
    return failed and not isinstance(error.__cause__, RetryError)


def _cut(completion: Completion, limit_tokens: int) -> Completion:
    """Cut a sequence whose server did not keep to max_tokens."""
    if len(completion.tokens) <= limit_tokens:
        return completion
    logprobs = completion.logprobs
    return dataclasses.replace(
        completion,
        finish_reason="length",
        tokens=completion.tokens[:limit_tokens],
        masks=completion.masks[:limit_tokens],
        logprobs=None if logprobs is None else logprobs[:limit_tokens],
    )


class Inference:
    """Asks the framework's servers for completions.

    Args:
        server: The framework's `ServerManager`.
        tokenizer: The environment's tokenizer.
        server_type: vllm, sglang, openai or trl: of servers whose client does not say.
        on_retry: Told why a request failed that is tried again.

    Attributes:
        trains: Whether a trainer gets the completions.
    """

    def __init__(
        self,
        server: Any,
        tokenizer: Any,
        server_type: str,
        on_retry: Callable[[str], None] | None = None,
    ) -> None:
        self._server = server
        self._tokenizer = tokenizer
        self._server_type = server_type
        self._on_retry = on_retry
        self.trains = False
        for client in server.servers:
            if isinstance(client, EndpointServer):
                client.tokenizer = tokenizer

    def _gives_tokens(self, client: Any) -> bool:
        """Say whether a server is asked for token ids."""
        config = getattr(client, "config", None)
        kind = getattr(config, "server_type", self._server_type)
        return self.trains or kind in TOKEN_TYPES

    async def generate(
        self, prompt: Prompt, n: int, sampling: Sampling
    ) -> list[Completion]:
        """Ask for `n` completions of one prompt.

        Returns:
            Exactly `n` completions, each at most prompt plus `max_tokens` long.

        Raises:
            InferenceFailed: No usable reply, or too few choices, in `COMPLETION_TRIES`.
        """
        limit = len(prompt.tokens) + sampling.max_tokens
        usable: list[Completion] = []

        async def attempt() -> list[Completion]:
            reply = await self._request(prompt, n - len(usable), sampling)
            usable.extend(_cut(c, limit) for c in reply if _is_usable(c))
            if len(usable) < n:
                raise InferenceFailed(f"{len(usable)} of {n} usable completions")
            return usable[:n]

        return await tried_again(self._tries, attempt)

    def _tries(self) -> AsyncRetrying:
        return AsyncRetrying(
            retry=retry_if_exception(_may_try_again),
            stop=stop_after_attempt(patience.COMPLETION_TRIES),
            wait=wait_random_exponential(
                patience.COMPLETION_FIRST_PAUSE_S,
                patience.COMPLETION_LONGEST_PAUSE_S,
            ),
            before_sleep=self._note_retry,
            reraise=True,
        )

    def _note_retry(self, state: RetryCallState) -> None:
        if self._on_retry is not None and state.outcome is not None:
            self._on_retry(str(state.outcome.exception()))

    async def _some_server(self) -> None:
        """Wait until a server is to be asked, trying those that are left out.

        Raises:
            NoServer: None was for `LONGEST_WAIT_FOR_SERVER_S`.
        """
        began = time.monotonic()
        servers = self._server.servers
        while True:
            for server in servers:
                if isinstance(server, GuardedServer):
                    server.try_if_due()
            reason = why_all_out(servers)
            if reason is None:
                return
            if time.monotonic() - began > patience.LONGEST_WAIT_FOR_SERVER_S:
                raise NoServer(f"NoServerError: no server is to be asked: {reason}")
            await asyncio.sleep(random.uniform(*patience.LOOK_FOR_SERVER_S))

    async def _request(
        self, prompt: Prompt, n: int, sampling: Sampling
    ) -> list[Completion]:
        arguments = {"n": n, **dataclasses.asdict(sampling)}
        # The framework itself asks in the one way or in the other.
        some = any(map(self._gives_tokens, self._server.servers))
        ask = self._managed if some else self._text_only
        while True:
            await self._some_server()
            try:
                return await ask(prompt, arguments)
            except ServerLeftOutError:
                await asyncio.sleep(random.uniform(*patience.LOOK_FOR_SERVER_S))
            except Exception as error:
                # As many kinds as ways to fail: aiohttp's, openai's, pydantic's,
                # KeyError on a malformed reply, all in the framework's retry error.
                raise InferenceFailed(self._describe(error)) from error

    def _describe(self, error: Exception) -> str:
        configs = [getattr(server, "config", None) for server in self._server.servers]
        keys = [secret for config in configs for secret in secrets_of(config)]
        return describe(_root_cause(error), *keys)

    async def _managed(
        self, prompt: Prompt, arguments: dict[str, Any]
    ) -> list[Completion]:
        """Ask the server that the framework would ask.

        The framework's managed server would render and encode the prompt once more and
        keep a tree of texts that nobody reads, so its server is asked directly. One
        that goes through a proxy has no server and is asked itself.
        """
        async with self._server.managed_server(tokenizer=self._tokenizer) as managed:
            if not isinstance(managed, ManagedServer):
                return await _through_proxy(managed, prompt, arguments)
            if not self._gives_tokens(managed.server):
                return await self._chat(managed.server, prompt, arguments)
            reply = await managed.server.tokens_and_logprobs_completion(
                input_ids=list(prompt.tokens), **arguments
            )
        if sum(map(len, reply[1])) <= FEW_TOKENS:
            return self._decoded(reply)
        return await off_loop(self._decoded, reply, breathe)

    def _decoded(
        self, reply: NativeReply, breathe: Callable[[], None] = no_breath
    ) -> list[Completion]:
        prompt, *lists = reply
        completions = []
        for ids, of_ids, reason in zip(*lists, strict=True):
            completion = Completion(
                text=self._tokenizer.decode(_as_array(ids), skip_special_tokens=True),
                finish_reason=end_of(reason),
                tokens=prompt + ids,
                masks=[PROMPT_MASK] * len(prompt) + ids,
                logprobs=[PROMPT_LOGPROB] * len(prompt) + of_ids,
            )
            completions.append(completion)
            breathe()
        return completions

    async def _text_only(
        self, prompt: Prompt, arguments: dict[str, Any]
    ) -> list[Completion]:
        return await self._chat(self._server, prompt, arguments)

    async def _chat(
        self, server: Any, prompt: Prompt, arguments: dict[str, Any]
    ) -> list[Completion]:
        reply = await server.chat_completion(
            messages=[dict(message) for message in prompt.messages], **arguments
        )
        end = self._tokenizer.eos_token or ""
        choices = usable_choices(reply)
        texts = [
            whole_text(choice, thinking_open=prompt.thinking_open).removesuffix(end)
            for choice in choices
        ]
        if sum(map(len, texts)) <= FEW_CHARS:
            tokens = self._encoded(texts)
        else:
            tokens = await off_loop(self._encoded, texts)
        return [
            Completion(
                text=text,
                finish_reason=choice.finish_reason,
                tokens=[*prompt.tokens, *ids],
                masks=[PROMPT_MASK] * len(prompt.tokens) + ids,
                logprobs=None,
            )
            for choice, text, ids in zip(choices, texts, tokens, strict=True)
        ]

    def _encoded(self, texts: list[str]) -> list[list[int]]:
        # Half a character of UTF-16 has no tokens, and the tokenizer raises at it.
        whole = [text.encode("utf-8", "replace").decode() for text in texts]
        # One text alone would be encoded without letting go of the interpreter's lock.
        batch: list[list[int]] = self._tokenizer(whole, add_special_tokens=False)[
            "input_ids"
        ]
        return batch


def _as_array(ids: list[int]) -> np.ndarray:
    """Return token ids as decode() takes them without a look at each one first.

    Raises:
        TypeError: One is no whole number.
    """
    array = np.asarray(ids)
    if ids and array.dtype.kind != "i":
        raise TypeError("a token id is no whole number")
    return array.astype(np.int64)


async def _through_proxy(
    managed: Any, prompt: Prompt, arguments: dict[str, Any]
) -> list[Completion]:
    messages = [dict(message) for message in prompt.messages]
    reply = await managed.chat_completion(messages=messages, **arguments)
    nodes = managed.get_state()["nodes"]
    return [
        Completion(
            text=choice.message.content or "",
            finish_reason=choice.finish_reason,
            tokens=node.tokens,
            masks=node.masked_tokens,
            logprobs=node.logprobs,
        )
        for choice, node in zip(reply.choices, nodes, strict=True)
    ]


def _root_cause(error: BaseException) -> BaseException:
    """Return what lies under tenacity's RetryError and chained exceptions."""
    attempt = getattr(error, "last_attempt", None)
    inner = attempt.exception() if attempt is not None else None
    return _root_cause(inner) if inner is not None else error
