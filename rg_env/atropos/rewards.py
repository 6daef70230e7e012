"""Scores and rewards of groups, and the levels that follow them."""

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
from rg_env.stream.completion_scores import extract_answers
from rg_env.stream.curriculum import Feedback
from rg_env.stream.group_scorer import GroupScorer
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

Completion = Mapping[str, Any]
"""messages, rg_item, dataset_obj, finish_reason, tokens, masks, logprobs; and
thinking_open if the chat template began the thinking."""


def scorer_of(config: ReasoningGymEnvConfig, pool: WorkerPool | None) -> GroupScorer:
    """Return the scorer of a run; without a pool, in the workers of this process."""
    pool = pool or shared_pool(tuple(config.task_modules))
    return GroupScorer(pool, config.scoring_deadline_s, config.scoring_rules)


def scored_rollout(completion: Completion, score: Score) -> Rollout:
    """Return a completion with its score, which is also its reward so far."""
    length = completion_tokens(completion["masks"])
    formats = score.formats
    return Rollout(
        conversation=[dict(message) for message in completion["messages"]],
        score=score.value,
        reward=score.value,
        outcome=score.outcome,
        answer=score.answer,
        finish_reason=completion.get("finish_reason"),
        prompt_tokens=len(completion["tokens"]) - length,
        completion_tokens=length,
        normalized=score.normalized,
        formats={"bare": formats.bare, "tagged": formats.tagged} if formats else None,
    )


@dataclasses.dataclass
class GroupRewards:
    """Scores the completions of a group in workers.

    Attributes:
        config: The settings of the run.
        helper: Returns a scoring helper of the original by its name, if a subclass or
            an instance overrides it; else None.
        pool: The workers of the run, once they are started.
    """

    config: ReasoningGymEnvConfig
    helper: Callable[[str], Any]
    pool: WorkerPool | None = None

    async def score(self, group: Group) -> None:
        """Set the rollouts of a group; their rewards are the scores.

        Raises:
            ScoringUnavailableError: The worker pool gave no scores.
        """
        completions = group.completions
        group.entry = completions[0]["rg_item"]
        group.dataset = completions[0]["dataset_obj"]
        extractions = await self._extract(completions)
        answers = [e.answer for e in extractions if e.answer is not None]
        scored = iter(await self._score_answers(group, answers))
        scores = [
            next(scored) if e.failure is None else Score(0.0, e.failure, None)
            for e in extractions
        ]
        group.rollouts = list(map(scored_rollout, completions, scores))

    async def _extract(self, completions: Sequence[Completion]) -> list[Extraction]:
        texts = [completion["messages"][-1]["content"] for completion in completions]
        if extract := self.helper("_extract_final_answer"):
            # In a thread, because it may take any time.
            answers = await asyncio.to_thread(lambda: [*map(extract, texts)])
            return [Extraction(a, "no_answer" if a is None else None) for a in answers]
        opened = [each.get("thinking_open", False) for each in completions]
        return await extract_answers(texts, opened, self.config.answer_format)

    async def _score_answers(self, group: Group, answers: list[str]) -> list[Score]:
        dataset = group.dataset
        entry = group.entry
        rules = self.config.scoring_rules
        if score := self.helper("_score_answer_with_both_formats"):
            values = await asyncio.to_thread(
                lambda: [as_unit(float(score(a, entry, dataset))) for a in answers]
            )
            return [
                rules.apply_partial_credit(Score(value, outcome_of(value), answer))
                for value, answer in zip(values, answers, strict=True)
            ]
        scorer = scorer_of(self.config, self.pool)
        return await scorer.score_group(dataset, entry, answers)


async def penalise_group(
    counts_prompt: bool, limit_tokens: Callable[[], int], group: Group
) -> None:
    """Lower the rewards of long completions in a scored group.

    Args:
        counts_prompt: Whether the tokens of the prompt count.
        limit_tokens: Returns the length of the longest sequence, in tokens.
        group: Has scores, and gets the rewards.
    """
    lengths = [rollout.completion_tokens for rollout in group.rollouts]
    if counts_prompt:
        lengths = [r.prompt_tokens + r.completion_tokens for r in group.rollouts]
    rewards = penalise_length(group.scores, lengths, limit_tokens())
    group.rollouts = [
        dataclasses.replace(rollout, reward=reward)
        for rollout, reward in zip(group.rollouts, rewards, strict=True)
    ]


async def move_level(feedback: Feedback, group: Group) -> None:
    """Move the level of a scored group's task, if it is due."""
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
