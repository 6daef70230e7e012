"""The client of one inference server: its requests and their replies.

Mends B25 of docs/host_defects.md: token ids come by any route that the server has.
Requests have the fields of those of the framework's classes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable
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

Call = Callable[[], None]

# The limit in tokens has two names, of which some models refuse the first.
MAX_TOKENS = "max_tokens"
MAX_COMPLETION_TOKENS = "max_completion_tokens"

# A reply up to here is read in about a millisecond, in place; the text of a chat is
# encoded, which takes longer than decoding token ids.
SHORT_REPLY_BYTES = 2**16
SHORT_CHAT_BYTES = 2**12

# A reply waits so long before it is read, so that the next request goes out first: many
# groups end together where completions are equally long, and the server would wait
# until all their replies have been read.
HEAD_START_S = 0.003


class Client(WatchedServer):
    """A client of an inference server of any type.

    Attributes:
        needs_tokens: Whether completions go to a trainer.
        model_names: The names of the model in replies.
        tokenizer: That of the server's config, or of the run.
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
        """Find out how to query the server, which may have changed."""
        request = self.probe_request
        if request is None:
            messages = [{"role": "user", "content": "hi"}]
            prompt = Prompt(messages, self.tokenizer.encode("hi"), False)
            request = ProbeRequest(prompt, {"n": 2})
        self.route = route = await find_route(self, request)
        if should_log(self.ejections):
            how = f"token ids from {route.path}"
            if route is CHAT:
                how = "queried as a chat"
            logger.info("inference at %s: %s", self.config.base_url, how)

    # -- completions -------------------------------------------------------------------

    def places(self, split: str) -> asyncio.Semaphore:
        """Return the places of requests of a split, "train" or "eval"."""
        return self.sem if split == "train" else self.eval_sem  # type: ignore[no-any-return]

    async def complete(
        self, prompt: Prompt, n: int, sampling: Sampling, on_reply: Call | None = None
    ) -> list[Completion]:
        """Query the server once.

        Raises:
            RequestFailedError: It is down or fails, or no completion is usable.
        """
        fields = {**vars(sampling), "n": n}
        is_training = fields.pop("split") == "train"
        timings = self.request_timings if is_training else self.eval_request_timings
        async with self.places(sampling.split):
            if not self.is_up:
                raise RequestFailedError(self.failure)
            began = time.monotonic()
            try:
                completions = await self.ask(self.route, prompt, fields, on_reply)
            except Exception as error:
                failure = failure_of(error, *secrets_of(self.config))
                self.note_failure(failure)
                raise RequestFailedError(failure) from error
        timings.append(time.monotonic() - began)
        self.note_answer()
        return completions

    async def ask(
        self, route: Route, prompt: Prompt, fields: Body, on_reply: Call | None = None
    ) -> list[Completion]:
        """Query by a route; return all completions, of which at least one is usable."""
        replies = await self._post(route, prompt, fields)
        if on_reply is not None:
            on_reply()
            await asyncio.sleep(HEAD_START_S)
        size_bytes = sum(len(block) for blocks in replies for block in blocks)
        short_bytes = SHORT_CHAT_BYTES if route is CHAT else SHORT_REPLY_BYTES
        try:
            if size_bytes <= short_bytes:
                completions = self._read(route, prompt, replies)
            else:
                completions = await in_thread(self._read, route, prompt, replies)
        except PARSE_ERRORS as error:
            begin = b"".join(replies[0])
            text = body_summary(begin, *secrets_of(self.config)) or "empty"
            raise bad_reply(f"a reply without completions: {text}") from error
        self._ignores_n |= len(completions) == 1 < fields.get("n", 1)
        names = {each.model for each in completions if isinstance(each.model, str)}
        for name in names - self.model_names:
            await check_model(self, name)
            self.model_names.add(name)
        check_some_usable(completions)
        return completions

    async def _post(
        self, route: Route, prompt: Prompt, fields: Body
    ) -> list[list[bytes]]:
        """Send one request, or `n` if the server ignores `n`; return replies."""
        fields = {"n": 1, **fields}
        times = fields["n"] if self._ignores_n else 1
        fields["n"] //= times
        extra = sampling_extra_of(self.config)
        if route is CHAT:
            fields = self._inject_reasoning_kwargs(fields)
            extra = extra_body_of(self.config) | (fields.pop("extra_body", None) or {})
            if MAX_TOKENS in fields:
                fields[self._limit_name] = fields.pop(MAX_TOKENS)
        body = route.body(prompt, fields | extra, self.config.model_name)
        sending = [self.connection.post(route.path, body) for _ in range(times)]
        try:
            return await asyncio.gather(*sending)
        except RequestFailedError as error:
            if MAX_COMPLETION_TOKENS in error.failure.text:
                self._limit_name = MAX_COMPLETION_TOKENS  # from the next try on
            raise

    def _read(
        self, route: Route, prompt: Prompt, replies: list[list[bytes]]
    ) -> list[Completion]:
        bodies = map(b"".join, replies)  # to join 5 MB takes 16 ms
        completions = (row for body in bodies for row in route.read(body, prompt))
        if route is CHAT:
            return read_texts(self.tokenizer, completions)
        return read_tokens(self.tokenizer, completions)

    # -- for the framework's own methods -----------------------------------------------

    async def _tokens_and_logprobs_completion_wrapper(self, **fields: Any) -> Any:
        text = fields.pop("prompt", None)
        tokens = fields.pop("input_ids", None)
        tokens = self.tokenizer.encode(text) if tokens is None else tokens
        tokens = with_one_bos(self.tokenizer, tokens)
        fields.pop("model", None)
        if self.route is CHAT:
            raise bad_reply(f"{self.config.base_url} gives no token ids")
        rows = await self.ask(self.route, Prompt([], tokens, False), fields)
        ids = [row.tokens for row in rows]
        logprobs = [row.logprobs for row in rows]
        return tokens, ids, logprobs, [row.finish_reason for row in rows]

    async def _chat_completion_wrapper(self, **fields: Any) -> ChatCompletion:
        prompt = Prompt(fields.pop("messages"), [], False)
        # The framework has put the arguments of reasoning in.
        replies = await self._post(CHAT, prompt, {**fields, "skip_reasoning": True})
        chats = [json.loads(b"".join(blocks)) for blocks in replies]
        choices = [choice for chat in chats for choice in chat["choices"]]
        return ChatCompletion.construct(**dict(chats[0], choices=choices))

    async def _completion_wrapper(self, **fields: Any) -> Any:
        raise NotImplementedError("query for tokens or for a chat")
