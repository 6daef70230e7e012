"""The client of one inference server: its requests and their replies.

Mends B25 of docs/host_defects.md: token ids come by any route that the server has.
Requests have the same fields as those of the framework's clients.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from atroposlib.envs.server_handling.vllm_server import AutoTokenizer
from openai.types.chat import ChatCompletion

from rg_env.executor import in_thread
from rg_env.inference.completions import (
    Completion,
    Sampling,
    check_some_usable,
    read_texts,
    read_tokens,
)
from rg_env.inference.connection import (
    RequestFailedError,
    bad_reply,
    body_summary,
    extra_body_of,
    failure_of,
    sampling_extra_of,
    secrets_of,
)
from rg_env.inference.probe import ProbeRequest, check_model, find_route
from rg_env.inference.prompts import Prompt, with_one_bos
from rg_env.inference.protocols import CHAT, PARSE_ERRORS, Body, Route
from rg_env.inference.server_health import WatchedServer
from rg_env.logs import should_log

logger = logging.getLogger(__name__)

Callback = Callable[[], None]

# Two names of the token limit; some models of OpenAI refuse the first.
MAX_TOKENS = "max_tokens"
MAX_COMPLETION_TOKENS = "max_completion_tokens"

# A reply up to this size is read on the event loop, in about a millisecond. The text of
# a chat is encoded, which takes longer than decoding token ids.
SHORT_REPLY_BYTES = 2**16
SHORT_CHAT_BYTES = 2**12

# The pause before a reply is read, so that the next request goes out first. If many
# completions are equally long, their groups end together, and without the pause the
# server would be idle until all replies have been read.
HEAD_START_S = 0.003


class Client(WatchedServer):
    """A client of an inference server of any type.

    Attributes:
        needs_tokens: Whether completions go to a trainer.
        model_names: The names of the model in replies.
        tokenizer: The tokenizer of the server's config, or of the run.
        probe_request: The request of a probe; None for a short built-in one.
        route: How the server is queried.
    """

    tokenizer: Any

    def __init__(self, config: Any, reasoning_config: Any = None) -> None:
        super().__init__(config, reasoning_config=reasoning_config)
        self.request_timings = deque[float](maxlen=config.rolling_buffer_length)
        self.eval_request_timings = self.request_timings.copy()
        self.tokenizer = None
        if config.server_type in ("vllm", "sglang"):
            self.tokenizer = AutoTokenizer.from_pretrained(config.tokenizer_name)
        self.needs_tokens = False
        self.model_names: set[str] = set()
        self.probe_request: ProbeRequest | None = None
        self.route = CHAT  # until a probe passes
        self._limit_name = MAX_TOKENS
        self._ignores_n: bool = config.n_kwarg_is_ignored

    async def _find_route(self) -> None:
        """Find out how to query the server, which may be another one than before."""
        request = self.probe_request
        if request is None:
            messages = [{"role": "user", "content": "hi"}]
            tokens = self.tokenizer.encode("hi")
            prompt = Prompt(messages, tokens, thinking_open=False)
            request = ProbeRequest(prompt, {"n": 2})
        self.route = route = await find_route(self, request)
        if should_log(self.ejections):
            text = f"token ids from {route.path}"
            if route is CHAT:
                text = "queried as a chat"
            logger.info("inference at %s: %s", self.config.base_url, text)

    # -- completions -------------------------------------------------------------------

    def request_slots(self, split: str) -> asyncio.Semaphore:
        """Return the limit of requests in flight of a split, "train" or "eval"."""
        return self.sem if split == "train" else self.eval_sem  # type: ignore[no-any-return]

    async def complete(
        self,
        prompt: Prompt,
        n: int,
        sampling: Sampling,
        on_reply: Callback | None = None,
    ) -> list[Completion]:
        """Query the server once, within its limit of requests in flight.

        Raises:
            RequestFailedError: The server is down or fails, or no completion is usable.
        """
        fields = {**vars(sampling), "n": n}
        is_training = fields.pop("split") == "train"
        timings = self.request_timings if is_training else self.eval_request_timings
        async with self.request_slots(sampling.split):
            if not self.is_up:
                raise RequestFailedError(self.failure)
            began_s = time.monotonic()
            try:
                completions = await self.query(self.route, prompt, fields, on_reply)
            except Exception as error:
                failure = failure_of(error, *secrets_of(self.config))
                self.note_failure(failure)
                raise RequestFailedError(failure) from error
        timings.append(time.monotonic() - began_s)
        self.note_answer()
        return completions

    async def query(
        self,
        route: Route,
        prompt: Prompt,
        fields: Body,
        on_reply: Callback | None = None,
    ) -> list[Completion]:
        """Query by a route; return all completions, of which at least one is usable.

        `fields` has the sampling, with `n`. `on_reply` is called when a reply has come,
        before it is read.
        """
        replies = await self._post(route, prompt, fields)
        if on_reply is not None:
            on_reply()
            await asyncio.sleep(HEAD_START_S)
        size_bytes = sum(len(block) for blocks in replies for block in blocks)
        short_bytes = SHORT_CHAT_BYTES if route is CHAT else SHORT_REPLY_BYTES
        read = partial(self._read, route, prompt, replies, fields.get(MAX_TOKENS))
        try:
            completions = read() if size_bytes <= short_bytes else await in_thread(read)
        except PARSE_ERRORS as error:
            body = b"".join(replies[0])
            text = body_summary(body, *secrets_of(self.config)) or "empty"
            raise bad_reply(f"a reply without completions: {text}") from error
        if len(completions) == 1 < fields.get("n", 1):
            self._ignores_n = True
        names = {each.model for each in completions if isinstance(each.model, str)}
        for name in names - self.model_names:
            await check_model(self, name)
            self.model_names.add(name)
        check_some_usable(completions)
        return completions

    async def _post(
        self, route: Route, prompt: Prompt, fields: Body
    ) -> list[list[bytes]]:
        """Send one request, or `n` of them if the server ignores `n`.

        Returns the blocks of each reply.
        """
        fields = {"n": 1, **fields}
        times = 1
        if self._ignores_n:
            times = fields["n"]
            fields["n"] = 1
        extra = sampling_extra_of(self.config)
        if route is CHAT:
            fields = self._inject_reasoning_kwargs(fields)
            extra = extra_body_of(self.config) | (fields.pop("extra_body", None) or {})
            if MAX_TOKENS in fields:
                fields[self._limit_name] = fields.pop(MAX_TOKENS)
        body = route.body(prompt, fields | extra, self.config.model_name)
        requests = [self.connection.post(route.path, body) for _ in range(times)]
        try:
            return await asyncio.gather(*requests)
        except RequestFailedError as error:
            if MAX_COMPLETION_TOKENS in error.failure.text:
                self._limit_name = MAX_COMPLETION_TOKENS  # from the next try on
            raise

    def _read(
        self,
        route: Route,
        prompt: Prompt,
        replies: list[list[bytes]],
        max_tokens: int | None,
    ) -> list[Completion]:
        bodies = map(b"".join, replies)  # to join 5 MB takes 16 ms
        completions = (row for body in bodies for row in route.read(body, prompt))
        if route is CHAT:
            # The server counts with its own tokenizer, so no text is truncated here.
            return read_texts(self.tokenizer, completions)
        return read_tokens(self.tokenizer, completions, max_tokens)

    # -- for the framework's own methods -----------------------------------------------

    async def _tokens_and_logprobs_completion_wrapper(self, **fields: Any) -> Any:
        text = fields.pop("prompt", None)
        tokens = fields.pop("input_ids", None)
        tokens = self.tokenizer.encode(text) if tokens is None else tokens
        tokens = with_one_bos(self.tokenizer, tokens)
        fields.pop("model", None)
        if self.route is CHAT:
            raise bad_reply(f"{self.config.base_url} gives no token ids")
        prompt = Prompt([], tokens, thinking_open=False)
        completions = await self.query(self.route, prompt, fields)
        ids = [each.tokens for each in completions]
        logprobs = [each.logprobs for each in completions]
        return tokens, ids, logprobs, [each.finish_reason for each in completions]

    async def _chat_completion_wrapper(self, **fields: Any) -> ChatCompletion:
        prompt = Prompt(fields.pop("messages"), [], thinking_open=False)
        # The framework has already added the arguments of reasoning.
        replies = await self._post(CHAT, prompt, {**fields, "skip_reasoning": True})
        chats = [json.loads(b"".join(blocks)) for blocks in replies]
        choices = [choice for chat in chats for choice in chat["choices"]]
        return ChatCompletion.construct(**dict(chats[0], choices=choices))

    async def _completion_wrapper(self, **fields: Any) -> Any:
        raise NotImplementedError("query for tokens or for a chat")
