"""Groups of completions from the inference servers.

For training, every server is queried for token ids and log-probabilities. Otherwise a
server that returns none, or that has the type openai, is queried as a chat.

Whatever goes wrong with a request (refused, 500, timed out, malformed, broken off, too
few choices) is a `RequestFailedError`. A failed request is never a wrong answer.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from atroposlib.envs.server_handling.managed_server import ManagedServer
from tenacity import RetryError

from rg_env import patience
from rg_env.inference.client import Client
from rg_env.inference.completions import (
    KNOWN_ENDS,
    Completion,
    Sampling,
    cut,
    from_chat,
    from_tokens,
    through_proxy,
)
from rg_env.inference.connection import secrets_of
from rg_env.inference.prompts import Prompt
from rg_env.inference.request_failures import (
    UNUSABLE,
    Failure,
    RequestFailedError,
    failure_of,
)
from rg_env.inference.server_state import ServerLeftOutError
from rg_env.inference.servers import NoServerError, Servers

logger = logging.getLogger(__name__)

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
        self,
        server: Any,
        tokenizer: Any,
        server_type: str,
        servers: Servers,
    ) -> None:
        self._server = server
        self._tokenizer = tokenizer
        self._server_type = server_type
        self._servers = servers
        self._trains = False
        self.ends: Counter[str] = Counter()
        for client in server.servers:
            if isinstance(client, Client) and not hasattr(client, "tokenizer"):
                client.tokenizer = tokenizer

    @property
    def trains(self) -> bool:
        """Whether a trainer gets the completions."""
        return self._trains

    @trains.setter
    def trains(self, trains: bool) -> None:
        self._trains = trains
        for client in self._server.servers:
            if isinstance(client, Client):
                client.needs_tokens = trains

    def _may_give_tokens(self, client: Any) -> bool:
        """Say whether a server may be queried for token ids."""
        if isinstance(client, Client):
            return self.trains or not client.chats
        config = getattr(client, "config", None)
        kind = getattr(config, "server_type", self._server_type)
        return self.trains or kind in TOKEN_TYPES

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
            on_reply: Called when a reply of token ids has come, before it is read.

        Raises:
            RequestFailedError: No usable reply, or too few choices, in
                `COMPLETION_TRIES`; or it is time to give up.
        """
        limit = len(prompt.tokens) + sampling.max_tokens
        usable: list[Completion] = []

        async def attempt() -> list[Completion]:
            made = await self._request(prompt, n - len(usable), sampling, on_reply)
            usable.extend(cut(c, limit) for c in made if c.unusable is None)
            self._count_ends(made)
            if len(usable) < n:
                whys = (c.unusable for c in made if c.unusable is not None)
                why = next(whys, Failure(UNUSABLE, "fewer were returned"))
                said = f"{len(usable)} of {n} usable completions ({why.said})"
                raise RequestFailedError(dataclasses.replace(why, said=said))
            return usable[:n]

        def note(error: Exception) -> None:
            self._servers.note_retry(failure_of(error))

        trying = patience.tried_again(
            attempt,
            _may_try_again,
            note,
            tries=patience.COMPLETION_TRIES,
            first_pause_s=patience.COMPLETION_FIRST_PAUSE_S,
            longest_pause_s=patience.COMPLETION_LONGEST_PAUSE_S,
        )
        return await self._servers.unless_given_up(trying)

    def _count_ends(self, made: list[Completion]) -> None:
        """Count usable completions by their end; name an unknown one once."""
        for completion in made:
            if completion.unusable is not None:
                continue
            word = str(completion.finish_reason)[:LONGEST_END]
            if word not in self.ends and len(self.ends) >= MOST_ENDS:
                word = OTHER_END
            if word not in KNOWN_ENDS and word not in self.ends:
                logger.warning(
                    "completions end with finish_reason %r, which is not known here:"
                    " they are used",
                    word,
                )
            self.ends[word] += 1

    async def _request(
        self,
        prompt: Prompt,
        n: int,
        sampling: Sampling,
        on_reply: Callable[[], None] | None,
    ) -> list[Completion]:
        arguments = {"n": n, **dataclasses.asdict(sampling)}
        # The framework itself queries in the one way or in the other.
        some = any(map(self._may_give_tokens, self._server.servers))
        while True:
            await self._servers.wait_for_one()
            try:
                if some:
                    return await self._managed(prompt, arguments, on_reply)
                return await self._chat(self._server, prompt, arguments)
            except ServerLeftOutError:
                await asyncio.sleep(random.uniform(*patience.LOOK_FOR_SERVER_S))
            except RequestFailedError:
                raise
            except Exception as error:
                # Of a client that is not ours: openai's, pydantic's, in a retry error.
                configs = [getattr(s, "config", None) for s in self._server.servers]
                secrets = [secret for each in configs for secret in secrets_of(each)]
                raise RequestFailedError(failure_of(error, *secrets)) from error

    async def _managed(
        self,
        prompt: Prompt,
        arguments: dict[str, Any],
        on_reply: Callable[[], None] | None,
    ) -> list[Completion]:
        """Query the server that the framework would choose.

        The framework's managed server would render and encode the prompt again and keep
        a tree of texts that nobody reads, so the server behind it is queried directly.
        A managed server that uses a proxy has no such server and is queried itself.
        """
        async with self._server.managed_server(tokenizer=self._tokenizer) as managed:
            if not isinstance(managed, ManagedServer):
                return await through_proxy(managed, prompt, arguments)
            client, gives_tokens = managed.server, self._may_give_tokens(managed.server)
            told = {}
            if isinstance(client, Client) and gives_tokens:
                if not client.is_probed:
                    await client.unless_lost(client.probe())
                    # Chosen anew, as others have been given places meanwhile.
                    return await self._managed(prompt, arguments, on_reply)
                told, gives_tokens = {"on_reply": on_reply}, client.route is not None
            if not gives_tokens:
                return await self._chat(client, prompt, arguments)
            reply = await client.tokens_and_logprobs_completion(
                input_ids=list(prompt.tokens), **arguments, **told
            )
        return await from_tokens(self._tokenizer, reply)

    async def _chat(
        self, server: Any, prompt: Prompt, arguments: dict[str, Any]
    ) -> list[Completion]:
        reply = await server.chat_completion(
            messages=[dict(message) for message in prompt.messages], **arguments
        )
        return await from_chat(self._tokenizer, prompt, reply)
