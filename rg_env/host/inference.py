"""Completions from the inference servers: the one boundary to that network.

Servers of type vllm and sglang return token ids and log-probabilities, through the
host's managed server; those train. Servers of type openai and trl return text; their
tokens come from our own tokenizer and they have no log-probabilities.

Whatever goes wrong with a request (refused, 500, timed out, malformed, too few
choices) becomes `InferenceFailed`. A failed request is never a wrong answer.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from rg_env.answers.prompt import Message

TRAINABLE_TYPES = frozenset({"vllm", "sglang"})
"""Server types whose replies carry what a trainer needs."""

MAX_ROUNDS = 3
"""Requests for one group before too few choices are a failure."""

PROMPT_MASK = -100
PROMPT_LOGPROB = 1.0


class InferenceFailed(RuntimeError):
    """The inference servers gave no usable reply; the text says what was tried."""


@dataclasses.dataclass(frozen=True)
class Prompt:
    """An item's messages, rendered.

    Attributes:
        messages: System and user.
        tokens: Prompt token ids, as the server will count them.
        thinking_open: Whether the template ends the prompt with `<think>`.
    """

    messages: Sequence[Message]
    tokens: Sequence[int]
    thinking_open: bool


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


def render_prompt(tokenizer: Any, messages: Sequence[Message]) -> Prompt:
    """Render messages with the tokenizer's chat template and generation prompt.

    Template and tokenizer may both put a BOS; the servers take one of them off, and so
    does the count here.
    """
    text = tokenizer.apply_chat_template(
        list(messages), tokenize=False, add_generation_prompt=True
    )
    tokens = tokenizer.encode(text, add_special_tokens=True)
    if len(tokens) >= 2 and tokens[0] == tokenizer.bos_token_id == tokens[1]:
        tokens = tokens[1:]
    return Prompt(messages, tokens, text.rstrip().endswith("<think>"))


def _is_usable(completion: Completion) -> bool:
    logprobs = completion.logprobs
    if logprobs is None:
        return True
    same_length = len(completion.tokens) == len(completion.masks) == len(logprobs)
    return same_length and all(map(math.isfinite, logprobs))


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
    """Asks the host's servers for completions.

    Args:
        server: The host's `ServerManager`.
        tokenizer: The environment's tokenizer.
        server_type: vllm, sglang, openai or trl.
    """

    def __init__(self, server: Any, tokenizer: Any, server_type: str) -> None:
        self._server = server
        self._tokenizer = tokenizer
        self.server_type = server_type

    @property
    def can_train(self) -> bool:
        """Whether replies carry token ids and log-probabilities."""
        return self.server_type in TRAINABLE_TYPES

    async def generate(
        self, prompt: Prompt, n: int, sampling: Sampling
    ) -> list[Completion]:
        """Ask for `n` completions of one prompt.

        Returns:
            Exactly `n` completions, each at most prompt plus `max_tokens` long.

        Raises:
            InferenceFailed: No usable reply, or too few choices in `MAX_ROUNDS`.
        """
        limit = len(prompt.tokens) + sampling.max_tokens
        usable: list[Completion] = []
        for _ in range(MAX_ROUNDS):
            reply = await self._request(prompt, n - len(usable), sampling)
            usable += [_cut(c, limit) for c in reply if _is_usable(c)]
            if len(usable) >= n:
                return usable[:n]
        raise InferenceFailed(
            f"{len(usable)} of {n} usable completions after {MAX_ROUNDS} requests"
        )

    async def _request(
        self, prompt: Prompt, n: int, sampling: Sampling
    ) -> list[Completion]:
        arguments = {
            "messages": [dict(message) for message in prompt.messages],
            "n": n,
            **dataclasses.asdict(sampling),
        }
        try:
            if self.can_train:
                return await self._managed(arguments)
            return await self._text_only(prompt, arguments)
        except Exception as error:
            # The host wraps every fault of this network (aiohttp's, openai's,
            # pydantic's, KeyError on a malformed reply) in its own retry error.
            cause = _root_cause(error)
            raise InferenceFailed(f"{type(cause).__name__}: {cause}"[:500]) from error

    async def _managed(self, arguments: dict[str, Any]) -> list[Completion]:
        async with self._server.managed_server(tokenizer=self._tokenizer) as managed:
            reply = await managed.chat_completion(**arguments)
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

    async def _text_only(
        self, prompt: Prompt, arguments: dict[str, Any]
    ) -> list[Completion]:
        reply = await self._server.chat_completion(**arguments)
        return [
            self._from_text(prompt, choice.message.content or "", choice.finish_reason)
            for choice in reply.choices
        ]

    def _from_text(
        self, prompt: Prompt, text: str, finish_reason: str | None
    ) -> Completion:
        text = text.removesuffix(self._tokenizer.eos_token or "")
        tokens = self._tokenizer.encode(text, add_special_tokens=False)
        return Completion(
            text=text,
            finish_reason=finish_reason,
            tokens=[*prompt.tokens, *tokens],
            masks=[PROMPT_MASK] * len(prompt.tokens) + tokens,
            logprobs=None,
        )


def _root_cause(error: BaseException) -> BaseException:
    """Return what lies under tenacity's RetryError and chained exceptions."""
    attempt = getattr(error, "last_attempt", None)
    inner = attempt.exception() if attempt is not None else None
    return _root_cause(inner) if inner is not None else error
