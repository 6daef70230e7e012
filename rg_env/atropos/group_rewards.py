"""Scores and rewards of groups, and whoever is informed about them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.atropos.rollout_requests import completion_tokens
from rg_env.inference.connection import sampling_extra_of
from rg_env.reward.extraction import Extraction
from rg_env.reward.score import Score, as_unit, outcome_of
from rg_env.run.group import Group, Rollout, Sink, has_variance
from rg_env.stream.completion_results import extract_in_time
from rg_env.stream.curriculum import Feedback
from rg_env.stream.group_scorer import GroupScorer
from rg_env.stream.shared_pool import shared_pool
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

Completed = Mapping[str, Any]
"""messages, rg_item, dataset_obj, finish_reason, tokens, masks, logprobs; and
thinking_open where the chat template began the thinking."""


def scored_rollout(completed: Completed, score: Score, reward: float) -> Rollout:
    """Return a completion with its score and its reward."""
    length, formats = completion_tokens(completed["masks"]), score.formats
    return Rollout(
        conversation=[dict(message) for message in completed["messages"]],
        score=score.value,
        reward=reward,
        outcome=score.outcome,
        answer=score.answer,
        finish_reason=completed.get("finish_reason"),
        prompt_tokens=len(completed["tokens"]) - length,
        completion_tokens=length,
        normalized=score.normalized,
        formats={"bare": formats.bare, "tagged": formats.tagged} if formats else None,
    )


class GroupRewards:
    """Scores groups; the levels learn from the scores, and sinks get each group."""

    def __init__(
        self,
        config: ReasoningGymEnvConfig,
        server: Any,
        feedback: Feedback,
        sinks: Sequence[Sink],
        helper: Callable[[str], Any],
    ) -> None:
        self._config, self._feedback, self._sinks = config, feedback, sinks
        # Returns a helper of the original that a subclass or an instance has replaced.
        self._helper = helper
        # As they are reported to the trainer.
        own = {"temperature": config.temperature, "top_p": config.top_p}
        self.sampled_with = {**own, **sampling_extra_of(server)}
        self._model: str = server.model_name
        self._how = config.scoring_deadline_s, config.scoring_rules
        self.pool: WorkerPool | None = None

    async def scores_of(self, completed: Sequence[Completed]) -> list[Score]:
        """Return a score of each completion, shape (G,); raises as the hook `score`."""
        extractions = await self._extractions_of(completed)
        answers = [e.answer for e in extractions if e.answer is not None]
        scored = iter(await self._scores_of(answers, completed[0]))
        return [
            Score(0.0, e.failure, None) if e.failure is not None else next(scored)
            for e in extractions
        ]

    async def _extractions_of(self, completed: Sequence[Completed]) -> list[Extraction]:
        texts = [each["messages"][-1]["content"] for each in completed]
        if extract := self._helper("_extract_final_answer"):
            # Its own time is no time of the event loop.
            answers = await asyncio.to_thread(lambda: [*map(extract, texts)])
            return [Extraction(a, "no_answer" if a is None else None) for a in answers]
        opened = [each.get("thinking_open", False) for each in completed]
        return await extract_in_time(texts, opened, self._config.answer_format)

    async def _scores_of(self, answers: list[str], first: Completed) -> list[Score]:
        dataset, entry = first["dataset_obj"], first["rg_item"]
        if score := self._helper("_score_answer_with_both_formats"):
            values = await asyncio.to_thread(
                lambda: [as_unit(float(score(a, entry, dataset))) for a in answers]
            )
            return [
                Score(value, outcome_of(value), answer)
                for value, answer in zip(values, answers, strict=True)
            ]
        pool = self.pool or shared_pool(tuple(self._config.task_modules))
        scorer = GroupScorer(pool, *self._how)
        return await scorer.score_group(dataset, entry, answers)

    async def score(
        self, group: Group, completed: Sequence[Completed], limit_tokens: int
    ) -> dict[str, Any] | None:
        """Do what the hook `score` does; the group gets its rollouts.

        `limit_tokens` is the longest sequence that may be generated.
        """
        scores = await self.scores_of(completed)
        first = completed[0]
        group.entry, group.dataset = first["rg_item"], first["dataset_obj"]
        is_whole = self._config.length_penalty_counts != "completion"
        lengths = [
            len(each["tokens"]) if is_whole else completion_tokens(each["masks"])
            for each in completed
        ]
        values = [score.value for score in scores]
        rewards = penalise_length(values, lengths, limit_tokens)
        group.rollouts = list(map(scored_rollout, completed, scores, rewards))
        change = self._feedback.take(
            group.task, group.mean_score, group.level, has_variance(rewards)
        )
        if change is not None:
            logger.info("%s", change)
        for sink in self._sinks:
            await sink.take(group)
        if self._config.ensure_scores_are_not_same and not has_variance(rewards):
            return None
        return self._trainer_data(group, completed)

    def _trainer_data(
        self, group: Group, completed: Sequence[Completed]
    ) -> dict[str, Any]:
        """Return the data for the trainer, with more fields for rows."""
        config, rollouts = self._config, group.rollouts
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
        return data


def penalise_length(
    scores: Sequence[float], lengths_tokens: Sequence[int], limit_tokens: int
) -> list[float]:
    """Scale down the scores of long completions in a group where all are at least 0.5.

    A score is unchanged up to 75 % of the limit in tokens, and falls linearly to 0 at
    the limit.

    Source: atropos 296a0bc, score(), length penalty; differs: none.
    """
    if min(scores) < 0.5:
        return list(scores)
    free_tokens = 0.75 * limit_tokens
    scale = limit_tokens - free_tokens
    kept = [(limit_tokens - length) / scale for length in lengths_tokens]
    pairs = zip(scores, kept, strict=True)
    return [score * min(1.0, max(0.0, share)) for score, share in pairs]
