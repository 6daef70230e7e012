"""The simulated model: a client without a server that knows the answer of each item.

`openai.base_url: simulated` selects it. A completion depends only on the item and on
its number among the completions of the item, not on time or earlier samples. The
log-probabilities are random: finite, negative and not those of a model.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from openai.types.chat import ChatCompletion

from rg_env.demo.policy import Known, PolicyProfile, sample_completion
from rg_env.executor import in_thread
from rg_env.inference.client import Call, Client
from rg_env.inference.completions import Completion, read_tokens
from rg_env.inference.prompts import Prompt
from rg_env.inference.protocols import COMPLETIONS, Body, Route
from rg_env.stream.item import Item
from rg_env.task_rules.table import solution

logger = logging.getLogger(__name__)


class SimulatedClient(Client):
    """A client that makes the completions of items itself, and never fails."""

    profile = PolicyProfile()

    def __init__(self, config: Any, reasoning_config: Any = None) -> None:
        super().__init__(config, reasoning_config=reasoning_config)
        self.is_up = True
        self.route = COMPLETIONS
        logger.warning(
            "the model is simulated: it knows the answers and makes mistakes at a set"
            " rate, so its texts and scores say nothing about any real one"
        )

    async def ask(
        self, route: Route, prompt: Prompt, fields: Body, on_reply: Call | None = None
    ) -> list[Completion]:
        """Make completions of the item of a prompt."""
        if prompt.item is None:
            raise NotImplementedError("the simulated model completes items alone")
        written = self._written(prompt, fields["n"], fields["max_tokens"])
        read = await in_thread(read_tokens, self.tokenizer, written)
        if on_reply is not None:
            on_reply()
        return read

    def _written(self, prompt: Prompt, n: int, max_tokens: int) -> Iterator[Completion]:
        known = _known(*prompt.item[-2:])
        for number in range(prompt.first, prompt.first + n):
            rng = random.Random(f"{known.index}/{number}/{known.question}")
            text, kind = sample_completion(known, self.profile, rng)
            if prompt.thinking_open:
                text = text.removeprefix("<think>\n")
            ids = self.tokenizer.encode(text, add_special_tokens=False)
            if kind == "unfinished":  # fills up to the limit
                ids *= max_tokens // len(ids) + 1
            ids.append(self.tokenizer.eos_token_id)
            reason = "stop" if len(ids) <= max_tokens else "length"
            ids = ids[:max_tokens]
            dice = np.random.default_rng(rng.getrandbits(32))
            logprobs = -dice.exponential(0.5, len(ids)).round(4)
            yield Completion(None, ids, logprobs.tolist(), reason)

    async def _chat_completion_wrapper(self, **fields: Any) -> ChatCompletion:
        raise NotImplementedError("the simulated model completes items alone")


def _known(entry: Mapping[str, Any], dataset: Any) -> Known:
    """Return the policy's knowledge of an item, which may be a foreign one."""
    metadata = entry.get("metadata") or {}
    is_ours = isinstance(dataset, Item)
    item = dataset if is_ours else Item(str(metadata.get("source_dataset")))
    return Known(
        task=item.task,
        question=str(entry["question"]),
        answer=solution(item.task, {"answer": None, **entry}) or "no solution known",
        level=item.level,
        answer_format=item.answer_format,
        index=item.index,
    )
