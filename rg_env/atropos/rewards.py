"""Scores and rewards of groups: the reward of a run, and the levels that follow it."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.atropos.model import completion_tokens
from rg_env.library.installed_library import shared_pool
from rg_env.reward.extraction import Extraction
from rg_env.reward.score import Score, as_unit, outcome_of
from rg_env.run.group import Group, Rollout, has_variance
from rg_env.stream.completion_scores import extract_in_time
from rg_env.stream.curriculum import Feedback
from rg_env.stream.group_scorer import GroupScorer
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

Completed = Mapping[str, Any]
"""messages, rg_item, dataset_obj, finish_reason, tokens, masks, logprobs; and
thinking_open where the chat template began the thinking."""


def scorer_of(config: ReasoningGymEnvConfig, pool: WorkerPool | None) -> GroupScorer:
    """Return the scorer of a run, in shared workers if it has none of its own."""
    pool = pool or shared_pool(tuple(config.task_modules))
    return GroupScorer(pool, config.scoring_deadline_s, config.scoring_rules)


def scored_rollout(completed: Completed, score: Score) -> Rollout:
    """Return a completion with its score, which is its reward too."""
    length = completion_tokens(completed["masks"])
    formats = score.formats
    return Rollout(
        conversation=[dict(message) for message in completed["messages"]],
        score=score.value,
        reward=score.value,
        outcome=score.outcome,
        answer=score.answer,
        finish_reason=completed.get("finish_reason"),
        prompt_tokens=len(completed["tokens"]) - length,
        completion_tokens=length,
        normalized=score.normalized,
        formats={"bare": formats.bare, "tagged": formats.tagged} if formats else None,
    )


class GroupRewards:
    """Scores the completions of a group in workers.

    Args:
        own_helper: Returns a scoring helper of the original that a subclass or an
            instance has replaced; None if it has not.
    """

    def __init__(
        self, config: ReasoningGymEnvConfig, own_helper: Callable[[str], Any]
    ) -> None:
        self._config = config
        self._own_helper = own_helper
        self.pool: WorkerPool | None = None

    async def score(self, group: Group) -> None:
        """Set the rollouts of a group; their rewards are the scores.

        Raises:
            ScoringUnavailableError: The worker pool gave no scores.
        """
        completed = group.completions
        scores = await self._scores_of(completed)
        group.entry = completed[0]["rg_item"]
        group.dataset = completed[0]["dataset_obj"]
        group.rollouts = list(map(scored_rollout, completed, scores))

    async def _scores_of(self, completed: Sequence[Completed]) -> list[Score]:
        extractions = await self._extractions_of(completed)
        answers = [e.answer for e in extractions if e.answer is not None]
        scored = iter(await self._scores_of_answers(answers, completed[0]))
        return [
            Score(0.0, e.failure, None) if e.failure is not None else next(scored)
            for e in extractions
        ]

    async def _extractions_of(self, completed: Sequence[Completed]) -> list[Extraction]:
        texts = [each["messages"][-1]["content"] for each in completed]
        if extract := self._own_helper("_extract_final_answer"):
            # Its own time is no time of the event loop.
            answers = await asyncio.to_thread(lambda: [*map(extract, texts)])
            return [Extraction(a, "no_answer" if a is None else None) for a in answers]
        opened = [each.get("thinking_open", False) for each in completed]
        return await extract_in_time(texts, opened, self._config.answer_format)

    async def _scores_of_answers(
        self, answers: list[str], first: Completed
    ) -> list[Score]:
        dataset = first["dataset_obj"]
        entry = first["rg_item"]
        rules = self._config.scoring_rules
        if score := self._own_helper("_score_answer_with_both_formats"):
            values = await asyncio.to_thread(
                lambda: [as_unit(float(score(a, entry, dataset))) for a in answers]
            )
            return [
                rules.apply_partial_credit(Score(value, outcome_of(value), answer))
                for value, answer in zip(values, answers, strict=True)
            ]
        scorer = scorer_of(self._config, self.pool)
        return await scorer.score_group(dataset, entry, answers)


async def penalise_group(
    counts_prompt: bool, limit_tokens: Callable[[], int], group: Group
) -> None:
    """Set the rewards of a scored group, which are lower for long completions.

    Args:
        counts_prompt: Whether the tokens of the prompt count.
        limit_tokens: Returns the longest sequence that may be generated.
        group: Takes the rewards.
    """
    lengths = [
        rollout.completion_tokens + counts_prompt * rollout.prompt_tokens
        for rollout in group.rollouts
    ]
    rewards = penalise_length(group.scores, lengths, limit_tokens())
    group.rollouts = [
        dataclasses.replace(rollout, reward=reward)
        for rollout, reward in zip(group.rollouts, rewards, strict=True)
    ]


async def move_level(feedback: Feedback, group: Group) -> None:
    """Move the level of a scored group's task, if it is time to."""
    change = feedback.take(
        group.task, group.mean_score, group.level, has_variance(group.rewards)
    )
    if change is not None:
        logger.info("%s", change)


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
