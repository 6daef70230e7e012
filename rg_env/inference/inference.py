"""Groups of completions from the inference servers.

For training, every server is queried for token ids and log-probabilities. Otherwise a
server that returns none, or that has the type openai, is queried as a chat.

Whatever goes wrong with a request (refused, 500, timed out, malformed, broken off, too
few choices) is a `RequestFailedError`. A failed request is never a wrong answer.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from tenacity import RetryError

from rg_env import patience
from rg_env.inference.client import ServerLeftOutError
from rg_env.inference.completions import (
    PROMPT_MASK,
    Completion,
    Sampling,
    cut,
    from_chat,
    highest_id,
    why_unusable,
)
from rg_env.inference.connection import secrets_of
from rg_env.inference.prompts import Prompt
from rg_env.inference.request_failures import (
    UNUSABLE,
    Failure,
    RequestFailedError,
    failure_of,
)
from rg_env.inference.servers import NoServerError, Servers

TOKEN_TYPES = frozenset({"vllm", "sglang"})
"""Types whose clients are queried for token ids, where a subclass names the client."""

MOST_ENDS = 16
"""Words for an end that are counted, each by its name; what comes after is `OTHER`."""

OTHER_END, LONGEST_END = "other", 32


def _may_try_again(error: BaseException) -> bool:
    """Say whether another try is ours; a client that is not ours has made its own."""
    if not isinstance(error, RequestFailedError) or isinstance(error, NoServerError):
        return False
    return not isinstance(error.__cause__, RetryError)


class Inference:
    """Queries the framework's servers for completions.

    Args:
        server: The framework's `ServerManager`.
        tokenizer: The environment's tokenizer.
        server_type: vllm, sglang, openai or trl: of servers whose client does not say.
        servers: Whether any server is there; told of each request that failed.

    Attributes:
        ends: How many completions ended with which word.
    """

    def __init__(
        self, server: Any, tokenizer: Any, server_type: str, servers: Servers
    ) -> None:
        self._server = server
        self._tokenizer = tokenizer
        self._server_type = server_type
        self._servers = servers
        self._trains = False
        self.ends: Counter[str] = Counter()
        for client in servers.clients:
            if not hasattr(client, "tokenizer"):
                client.tokenizer = tokenizer

    @property
    def trains(self) -> bool:
        """Whether a trainer gets the completions."""
        return self._trains

    @trains.setter
    def trains(self, trains: bool) -> None:
        self._trains = trains
        for client in self._servers.clients:
            client.needs_tokens = trains

    async def generate(
        self,
        prompt: Prompt,
        n: int,
        sampling: Sampling,
        on_reply: Callable[[], None] | None = None,
    ) -> list[Completion]:
        """Sample exactly `n` completions of one prompt, of at most `max_tokens` each.

        Args:
            prompt: What is sent.
            n: How many.
            sampling: How they are sampled.
            on_reply: Called when a reply has come, before it is read.

        Raises:
            RequestFailedError: No usable reply, or too few choices, in
                `COMPLETION_TRIES`; or it is time to give up.
        """
        limit = len(prompt.tokens) + sampling.max_tokens
        usable: list[Completion] = []

        async def attempt() -> list[Completion]:
            made = await self._request(prompt, n - len(usable), sampling, on_reply)
            for completion in made:
                if completion.unusable is None:
                    usable.append(cut(completion, limit))
                    word = str(completion.finish_reason)[:LONGEST_END]
                    is_new = word not in self.ends and len(self.ends) >= MOST_ENDS
                    self.ends[OTHER_END if is_new else word] += 1
            if len(usable) < n:
                whys = (c.unusable for c in made if c.unusable is not None)
                why = next(whys, Failure(UNUSABLE, "fewer were returned"))
                said = f"{len(usable)} of {n} usable completions ({why.said})"
                raise RequestFailedError(dataclasses.replace(why, said=said))
            return usable[:n]

        trying = patience.tried_again(
            attempt,
            _may_try_again,
            lambda error: self._servers.note_retry(failure_of(error)),
            tries=patience.COMPLETION_TRIES,
            first_pause_s=patience.COMPLETION_FIRST_PAUSE_S,
            longest_pause_s=patience.COMPLETION_LONGEST_PAUSE_S,
        )
        return await self._servers.unless_given_up(trying)

    async def _request(
        self,
        prompt: Prompt,
        n: int,
        sampling: Sampling,
        on_reply: Callable[[], None] | None,
    ) -> list[Completion]:
        while True:
            client = await self._servers.ready(trains=sampling.split == "train")
            try:
                if client is None or self._server.use_proxy:
                    return await self._by_framework(prompt, n, sampling)
                return await client.complete(prompt, n, sampling, on_reply)
            except ServerLeftOutError:
                await asyncio.sleep(random.uniform(*patience.LOOK_FOR_SERVER_S))
            except RequestFailedError:
                raise
            except Exception as error:
                # Of a client that is not ours: openai's, pydantic's, in a retry error.
                configs = [getattr(s, "config", None) for s in self._server.servers]
                secrets = [secret for each in configs for secret in secrets_of(each)]
                raise RequestFailedError(failure_of(error, *secrets)) from error

    async def _by_framework(
        self, prompt: Prompt, n: int, sampling: Sampling
    ) -> list[Completion]:
        """Query by the framework's own ways: its proxy, or a client of a subclass."""
        arguments = {"n": n, **dataclasses.asdict(sampling)}
        arguments["messages"] = [dict(message) for message in prompt.messages]
        config = getattr(self._server.servers[0], "config", None)
        kind = getattr(config, "server_type", self._server_type)
        if not self.trains and kind not in TOKEN_TYPES:
            reply = await self._server.chat_completion(**arguments)
            choices = [choice.model_dump() for choice in reply.choices]
            return from_chat(self._tokenizer, prompt, choices)
        async with self._server.managed_server(tokenizer=self._tokenizer) as managed:
            reply = await managed.chat_completion(**arguments)
            both = zip(reply.choices, managed.get_state()["nodes"], strict=True)
        completions = []
        for choice, node in both:
            begin = node.masked_tokens.count(PROMPT_MASK)
            written = node.tokens[begin:], node.logprobs[begin:]
            highest, end = highest_id(self._tokenizer), choice.finish_reason
            completion = Completion(
                text=choice.message.content or "",
                finish_reason=end,
                tokens=node.tokens,
                masks=node.masked_tokens,
                logprobs=node.logprobs,
                unusable=why_unusable(*written, end, highest),
            )
            completions.append(completion)
        return completions
