"""Prompts of items, and the rollouts that the servers complete them to."""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rg_env import patience
from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.errors import SettingError
from rg_env.inference.completions import (
    Completion,
    Prompt,
    Prompts,
    Sampling,
    render_prompt,
)
from rg_env.inference.connection import template_kwargs_of
from rg_env.inference.probe import ProbeRequest
from rg_env.inference.servers import Servers
from rg_env.items.item import Item
from rg_env.items.run_stream import NoItemsError, RunStream
from rg_env.scoring.prompt import SYSTEM_PROMPT, Message, build_messages
from rg_env.settings.environment_settings import PUBLISHED

logger = logging.getLogger(__name__)

SHORT_QUESTION = "What is 2 + 2?"


@dataclasses.dataclass
class LengthLimit:
    """The longest sequences, prompt and completion, in tokens.

    Attributes:
        config: Says what may be generated.
        trainer: What the trainer asks sequences to stay below; 0 or less for none.
    """

    config: ReasoningGymEnvConfig
    trainer: int = -1

    @property
    def tokens(self) -> int:
        """The longest sequence that may be generated.

        The framework drops a whole group when one of its sequences reaches the
        trainer's limit, so a sequence must stay below it.
        """
        limit = self.config.max_token_length
        return min(limit, self.trainer - 1) if self.trainer > 0 else limit

    @property
    def evaluation_tokens(self) -> int:
        """The same of an evaluation."""
        return self.config.eval_max_token_length or self.tokens


class RolloutRequests:
    """Queries the inference servers for rollouts.

    Attributes:
        published_prompt: The system prompt of the library's published evaluations.
        default_prompt: Returns the system prompt where no setting says it.
    """

    def __init__(
        self,
        config: ReasoningGymEnvConfig,
        length: LengthLimit,
        tokenizer: Any,
        servers: Servers,
        server: Any,
    ) -> None:
        self._config = config
        self._length = length
        self._tokenizer = tokenizer
        self._servers = servers
        self._template_kwargs = template_kwargs_of(server)
        self._prompts = Prompts(tokenizer, self._template_kwargs)
        self.published_prompt = ""
        self.default_prompt: Callable[[], str] = lambda: SYSTEM_PROMPT

    def take_published_prompt(self, prompt: str) -> None:
        """Take the prompt of the installed library.

        Raises:
            SettingError: It is wanted, and the library has none.
        """
        if self._config.eval_system_prompt == PUBLISHED and not prompt:
            raise SettingError(
                "env.eval_system_prompt: the installed reasoning-gym has no published"
                " prompt"
            )
        self.published_prompt = prompt

    def messages(
        self, question: str, *, evaluates: bool = False
    ) -> tuple[Message, Message]:
        """Return the system and the user message of a question."""
        own = self._config.system_prompt or self.default_prompt()
        if evaluates and self._config.eval_system_prompt is not None:
            own = self._config.eval_system_prompt
            own = self.published_prompt if own == PUBLISHED else own
        before = self._config.custom_thinking_prompt
        return build_messages(question, f"{before}\n\n{own}" if before else own)

    async def prompt(self, messages: Sequence[Mapping[str, str]]) -> Prompt:
        """Return the prompt of messages; a long one is rendered off the event loop."""
        return await self._prompts.render(messages)

    async def next_that_fits(
        self, items: RunStream, events: Counter[str]
    ) -> tuple[Sequence[Message], Mapping[str, Any], Item]:
        """Return the next item whose prompt leaves room: messages, entry, dataset.

        Raises:
            NoItemsError: No item could be made, or no prompt fitted, for too long.
        """
        in_a_row = 0
        while in_a_row < patience.LONG_PROMPTS_IN_A_ROW:
            item = await items.next()
            messages = self.messages(item.question)
            prompt = await self.prompt(messages)
            if len(prompt.tokens) < self._length.tokens:
                logger.debug("next item %r", item)
                return messages, item.entry, item
            events["prompts_too_long"] += 1
            in_a_row += not items.is_catching_up  # else rows stood between them
            logger.debug("%r: its prompt leaves no room", item)
        raise NoItemsError(
            f"{patience.LONG_PROMPTS_IN_A_ROW} prompts in a row reach the limit of"
            f" {self._length.tokens} tokens; raise env.max_token_length or the"
            " trainer's"
        )

    def check_limit(self) -> None:
        """Refuse a limit that the shortest question reaches."""
        limit_tokens = self._length.tokens
        name, limit = "the trainer's max_token_len", self._length.trainer
        if self._config.max_token_length == limit_tokens:
            name, limit = "env.max_token_length", limit_tokens
        self._check(name, limit, limit_tokens, evaluates=False)
        own_limit = self._config.eval_max_token_length
        if own_limit is not None:
            name = "env.eval_max_token_length"
            self._check(name, own_limit, own_limit, evaluates=True)

    def _check(
        self, name: str, limit: int, limit_tokens: int, *, evaluates: bool
    ) -> None:
        """Refuse a limit in tokens that prompt and answer may not have together."""
        messages = self.messages("?", evaluates=evaluates)
        prompt = render_prompt(self._tokenizer, messages, self._template_kwargs)
        shortest = len(prompt.tokens)
        if shortest >= limit_tokens:
            raise SettingError(
                f"{name}: {limit} tokens leave no room for an answer: the prompt of the"
                f" shortest question takes {shortest}"
            )

    async def check_evaluation(self, questions: Sequence[str]) -> None:
        """Refuse a limit that the prompts of all evaluation items reach."""
        limit = self._length.evaluation_tokens
        for question in questions:
            prompt = await self.prompt(self.messages(question, evaluates=True))
            if len(prompt.tokens) < limit:
                return
        if questions:
            raise SettingError(
                f"env.eval_max_token_length: {limit} tokens (env.max_token_length where"
                f" it is not set) leave no room for an answer to any of the"
                f" {len(questions)} items; raise it"
            )

    def probe_request(self, kind: str) -> ProbeRequest:
        """Return the request with which servers are probed: a short question."""
        sampling = self._sampling("eval" if kind == "evaluate" else "train")
        # Two show whether a server returns as many as it is asked for.
        sampling["n"] = min(2, sampling["n"])
        messages = self.messages(SHORT_QUESTION)
        prompt = render_prompt(self._tokenizer, messages, self._template_kwargs)
        gives_rows = kind == "process"
        return ProbeRequest(prompt, sampling, gives_rows)

    def _sampling(self, split: str) -> dict[str, Any]:
        """Return the sampling parameters of a split, train or eval."""
        config = self._config
        if split == "eval":
            return {"n": 1, "temperature": config.eval_temperature, "top_p": 1.0}
        sampling = {"temperature": config.temperature, "top_p": config.top_p}
        return {"n": config.group_size, **sampling}

    async def query(
        self, item: Any, on_replies: Callable[[], None]
    ) -> list[dict[str, Any]]:
        """Return the rollouts of an item, one for each completion of the servers.

        Args:
            item: (messages, entry, dataset).
            on_replies: Called when the replies have come.

        Returns:
            What the hook `score` takes, shape (G,).

        Raises:
            RequestFailedError: The servers did not answer, or it is time to give up.
        """
        rollouts = await self._query(item, "train", self._length.tokens, on_replies)
        # Also where the client is a subclass's own, which does not call it.
        on_replies()
        return rollouts

    async def query_evaluation(
        self, entry: Mapping[str, Any], dataset: Any
    ) -> dict[str, Any]:
        """Return a rollout of an evaluation item; raises as `query`."""
        messages = self.messages(entry["question"], evaluates=True)
        item = messages, entry, dataset
        (rollout,) = await self._query(item, "eval", self._length.evaluation_tokens)
        return rollout

    async def _query(
        self,
        item: Any,
        split: str,
        limit_tokens: int,
        on_reply: Callable[[], None] | None = None,
    ) -> list[dict[str, Any]]:
        messages, entry, dataset = item
        prompt = await self.prompt(messages)
        how = self._sampling(split)
        # An evaluation item may leave no room, and servers refuse 0 tokens.
        n, room = how.pop("n"), max(1, limit_tokens - len(prompt.tokens))
        sampling = Sampling(max_tokens=room, split=split, **how)
        found = await self._servers.generate(prompt, n, sampling, on_reply)
        return [_rollout(prompt, completion, entry, dataset) for completion in found]


def _rollout(
    prompt: Prompt, completion: Completion, entry: Any, dataset: Any
) -> dict[str, Any]:
    """Return what the hook `score` takes of a completion."""
    answer = {"role": "assistant", "content": completion.text}
    return {
        "messages": [*prompt.messages, answer],
        "rg_item": entry,
        "dataset_obj": dataset,
        "finish_reason": completion.finish_reason,
        "tokens": completion.tokens,
        "masks": completion.masks,
        "logprobs": completion.logprobs,
        "thinking_open": prompt.thinking_open,
    }
