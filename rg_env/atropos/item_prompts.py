"""Prompts of items: their messages, how long they may be, and how they are sampled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.errors import SettingError
from rg_env.inference.connection import extra_body_of
from rg_env.inference.probe import ProbeRequest
from rg_env.inference.prompts import Prompts
from rg_env.reward.prompt import prompt_of, prompts_of
from rg_env.settings.environment_settings import PUBLISHED
from rg_env.settings.program_settings import TEMPLATE_KWARGS
from rg_env.stream.item import Message, build_messages


class ItemPrompts:
    """The prompts of items, and how their completions are sampled."""

    def __init__(
        self,
        config: ReasoningGymEnvConfig,
        tokenizer: Any,
        server: Any,
    ) -> None:
        self._config = config
        template_kwargs = extra_body_of(server).get(TEMPLATE_KWARGS) or {}
        self.prompts = Prompts(tokenizer, template_kwargs)
        self.published_prompt = ""

    def take_published_prompt(self, prompt: str) -> None:
        """Take the prompt of the installed library, which may have none."""
        if self._config.eval_system_prompt == PUBLISHED and not prompt:
            reason = "the installed reasoning-gym has no published prompt"
            raise SettingError(reason, "env.eval_system_prompt")
        self.published_prompt = prompt

    def messages(
        self, question: str, seed: int = 0, *, evaluates: bool = False
    ) -> tuple[Message, Message]:
        """Return the system and the user message of a question, by its item's seed."""
        config = self._config
        own = prompt_of(config.system_prompt, config.answer_format, seed)
        if evaluates and self._config.eval_system_prompt is not None:
            own = self._config.eval_system_prompt
            own = self.published_prompt if own == PUBLISHED else own
        before = self._config.custom_thinking_prompt
        return build_messages(question, f"{before}\n\n{own}" if before else own)

    async def has_room(self, messages: Sequence[Message], limit_tokens: int) -> bool:
        """Say whether a prompt leaves room for an answer."""
        return len((await self.prompts.render(messages)).tokens) < limit_tokens

    def check_limit(self, limit_tokens: int) -> None:
        """Refuse limits that the shortest question reaches: ours, the trainer's."""
        is_own = self._config.max_token_length == limit_tokens
        name = "env.max_token_length" if is_own else "the trainer's max_token_len"
        limits = {name: limit_tokens}
        config = self._config
        seeds = range(len(prompts_of(config.system_prompt, config.answer_format)))
        if (own := self._config.eval_max_token_length) is not None:
            limits["env.eval_max_token_length"] = own
        for name, limit in limits.items():
            is_eval = "eval" in name
            prompts = [self.messages("?", seed, evaluates=is_eval) for seed in seeds]
            longest = max(len(self.prompts.render_now(each).tokens) for each in prompts)
            if longest >= limit:
                raise SettingError(
                    f"{limit} tokens leave no room for an answer: the prompt of the"
                    f" shortest question takes {longest}",
                    name,
                )

    async def check_evaluation(
        self, prompts: Sequence[Sequence[Message]], limit: int
    ) -> None:
        """Refuse a limit in tokens that the prompts of all evaluation items reach."""
        for messages in prompts:
            if await self.has_room(messages, limit):
                return
        if prompts:
            reason = f"{limit} tokens leave no room for an answer to any of the items"
            raise SettingError(reason, "env.eval_max_token_length")

    def probe_request(self, kind: str) -> ProbeRequest:
        """Return the request with which servers are probed: a short question."""
        sampling = self.sampling("eval" if kind == "evaluate" else "train")
        # Two show whether a server returns as many as it is asked for.
        sampling["n"] = min(2, sampling["n"])
        prompt = self.prompts.render_now(self.messages("What is 2 + 2?"))
        return ProbeRequest(prompt, sampling)

    def sampling(self, split: str) -> dict[str, Any]:
        """Return how the completions of train or eval are sampled, `n` of each item."""
        config = self._config
        if split == "eval":
            return {"n": 1, "temperature": config.eval_temperature, "top_p": 1.0}
        sampling = {"temperature": config.temperature, "top_p": config.top_p}
        return {"n": config.group_size, **sampling}
