"""The data of a group for the trainer, and the checks that it passes before."""

from __future__ import annotations

import logging
import time
from typing import Any

from atroposlib.envs.base import APIServerConfig, BaseEnv

from rg_env.atropos.completions import completion_tokens
from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.executor import in_thread
from rg_env.inference.connection import sampling_extra_of
from rg_env.run.group import Ending, Group, has_variance, listed, rollouts_in
from rg_env.run.loop import Refused

logger = logging.getLogger(__name__)

SET_IF_ABSENT = (
    "ref_logprobs",
    "overrides",
    "group_overrides",
    "distill_token_ids",
    "distill_logprobs",
)


class TrainerData:
    """The sink that makes the data for the trainer, with more fields for rows."""

    def __init__(self, config: ReasoningGymEnvConfig, server: APIServerConfig) -> None:
        self._config = config
        self._model = server.model_name
        # As they are reported to the trainer.
        own = {"temperature": config.temperature, "top_p": config.top_p}
        self.sampled_with = {**own, **sampling_extra_of(server)}

    async def take(self, group: Group) -> None:
        """Set the data of a group; refuse equal rewards if that is set."""
        config = self._config
        if config.ensure_scores_are_not_same and not has_variance(group.rewards):
            raise Refused(Ending.ZERO_VARIANCE)
        group.data = self._data(group)

    def _data(self, group: Group) -> dict[str, Any]:
        config = self._config
        completed = group.completions
        rollouts = group.rollouts
        logprobs = [each.get("logprobs") for each in completed]
        is_masked = [
            config.mask_too_long_completions and rollout.finish_reason == "length"
            for rollout in rollouts
        ]
        data = {
            "tokens": [each["tokens"] for each in completed],
            "masks": [each["masks"] for each in completed],
            "scores": group.rewards,
            # The API takes a list of numbers for every rollout, or nothing.
            "inference_logprobs": None if None in logprobs else logprobs,
            # So that the model is not taught by a completion it could not end.
            "overrides": [
                {"set_advantage_to_zero": True} if each else {} for each in is_masked
            ],
            "group_overrides": {},
            "generation_params": self.sampled_with,
            "model": self._model,
            "task": group.task,
            "question": group.entry.get("question"),
            "gold_answer": group.gold_answer,
            "answers": [rollout.answer for rollout in rollouts],
            "outcomes": [rollout.outcome for rollout in rollouts],
            "task_scores": group.scores,
            "finish_reasons": [rollout.finish_reason for rollout in rollouts],
            "completion_tokens": [rollout.completion_tokens for rollout in rollouts],
            **group.origin,
        }
        if config.include_messages:
            data["messages"] = [list(rollout.conversation) for rollout in rollouts]
        data["seconds"] = round(time.monotonic() - group.began_s, 3)
        return data


async def check(env: BaseEnv, group: Group, limit_tokens: int) -> None:
    """Keep the data of a group, or of several, that can be delivered.

    Every sequence must stay below `limit_tokens`, 0 or less for no limit.

    Raises:
        Refused: Nothing is left.
    """
    passed = []
    for part in listed(group.data):
        fault = await _fault_of(env, part, group.is_for_trainer, limit_tokens)
        if fault is None:
            passed.append(part)
        else:
            logger.warning("a group is not sent: %s", fault)
            group.end(Ending.DISCARDED, rollouts_in(part))
    if not passed:
        raise Refused(Ending.DISCARDED)
    group.data = passed if isinstance(group.data, list) else passed[0]


async def _fault_of(
    env: BaseEnv, part: dict[str, Any], is_for_trainer: bool, limit_tokens: int
) -> str | None:
    """Return why a group cannot be delivered; set the fields of the API."""
    config = env.config
    rows = part.get("tokens", [])
    size = (part.get("group_overrides") or {}).get("group_size", config.group_size)
    if len(rows) != size:
        return f"it has {len(rows)} rollouts instead of {size}"
    if config.ensure_scores_are_not_same and len(set(part["scores"])) == 1:
        return "its scores are all the same"
    for key in SET_IF_ABSENT:
        part.setdefault(key, None)
    lengths = [*map(completion_tokens, part["masks"])]
    env.completion_lengths += lengths
    if is_for_trainer and 0 in lengths:
        return "a completion has no token that could be trained on"
    longest = max(map(len, rows), default=0)
    if 0 < limit_tokens <= longest:
        return f"{longest} tokens reach the trainer's limit, {limit_tokens}"
    if config.include_messages and part.get("messages") is None:
        texts = await in_thread(lambda: [*map(env.tokenizer.decode, part["tokens"])])
        part["messages"] = [[{"role": "user", "content": text}] for text in texts]
    return None
