"""Scores and rewards of groups, and whoever is informed about them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.atropos.rollout_requests import LengthLimit
from rg_env.inference.completions import PROMPT_LOGPROB, PROMPT_MASK
from rg_env.inference.connection import sampling_extra_of
from rg_env.items.group_scorer import GroupScorer, extract_in_time
from rg_env.items.item import Item, shared_pool
from rg_env.reports.metrics import Metrics
from rg_env.rollouts import shaping
from rg_env.rollouts.group_record import GroupRecord, Provenance, RolloutRecord
from rg_env.rollouts.run_dumps import Dumps
from rg_env.scoring.score import Score
from rg_env.tasks.feedback import Feedback
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

FRAMEWORK_VERSION = metadata.version("atroposlib")

GROUP_LINE_EVERY = 10
"""Groups of which one has its scores in the log, without `debug_logging`."""

Rollout = Mapping[str, Any]
"""messages, rg_item, dataset_obj, finish_reason, tokens, masks, logprobs; and
thinking_open where the chat template began the thinking."""


def completion_tokens(rollout: Rollout) -> int:
    """Return the length of a rollout's completion, in tokens."""
    masks = list(rollout["masks"])
    return len(masks) - masks.count(PROMPT_MASK)


def mean_logprob(rollout: Rollout) -> float | None:
    """Return the mean log-probability over a completion, None where there is none."""
    logprobs, length = rollout.get("logprobs"), completion_tokens(rollout)
    if logprobs is None or not length:
        return None
    # The prompt is left out by its sum: a slice of a long list costs more.
    of_prompt = (len(logprobs) - length) * PROMPT_LOGPROB
    return float((sum(logprobs) - of_prompt) / length)


def baseline_of(dataset: Any) -> float:
    """Return what guessing scores at an item; 0 for one from outside."""
    return dataset.baseline if isinstance(dataset, Item) else 0.0


def task_and_provenance(
    entry: Mapping[str, Any], dataset: Any
) -> tuple[str, Provenance | None]:
    """Return the task of an item, and what makes it again if it is ours."""
    if isinstance(dataset, Item):
        params = dict(dataset.params)
        how = (dataset.split, dataset.index, dataset.seed, dataset.level, params)
        return dataset.task, Provenance(*how)
    # Nothing regenerates an item from outside.
    return str((entry.get("metadata") or {}).get("source_dataset", "unknown")), None


def record_of(
    rollouts: Sequence[Rollout], scores: Sequence[Score], rewards: Sequence[float]
) -> GroupRecord:
    """Return the record of the rollouts of one item, all of shape (G,)."""
    entry, made = rollouts[0]["rg_item"], rollouts[0]["dataset_obj"]
    task, item = task_and_provenance(entry, made)
    records = list(map(_rollout_record, rollouts, scores, rewards))
    return GroupRecord(task, records, entry.get("answer"), item, baseline_of(made))


def _rollout_record(rollout: Rollout, score: Score, reward: float) -> RolloutRecord:
    length, formats = completion_tokens(rollout), score.formats
    return RolloutRecord(
        conversation=[dict(message) for message in rollout["messages"]],
        score=score.value,
        reward=reward,
        outcome=score.outcome,
        answer=score.answer,
        finish_reason=rollout.get("finish_reason"),
        prompt_tokens=len(rollout["tokens"]) - length,
        completion_tokens=length,
        normalized=score.normalized,
        formats={"bare": formats.bare, "tagged": formats.tagged} if formats else None,
    )


class GroupRewards:
    """Scores groups and tells the result to dumps, metrics and levels.

    Args:
        config: The settings.
        length: How long a sequence may become.
        dumps: Keep scored groups.
        metrics: Count them.
        feedback: Moves the levels.
        server: The settings of a server, whose `extra_body` may contain sampling
            fields.

    Attributes:
        pool: The workers that score; None for those that the process shares.
        versions: What a dumped line names.
    """

    def __init__(
        self,
        config: ReasoningGymEnvConfig,
        length: LengthLimit,
        dumps: Dumps,
        metrics: Metrics,
        feedback: Feedback,
        server: Any,
    ) -> None:
        self._config = config
        self._length = length
        self._dumps = dumps
        self._metrics = metrics
        self._feedback = feedback
        self._server_sampling = sampling_extra_of(server)
        self.pool: WorkerPool | None = None
        self.versions = {"atroposlib": FRAMEWORK_VERSION}

    def scorer(self) -> GroupScorer:
        """Return what scores answers, in workers."""
        config = self._config
        pool = self.pool or shared_pool(tuple(config.task_modules))
        return GroupScorer(pool, config.scoring_deadline_s, config.scoring_rules)

    def sampled_with(self) -> dict[str, Any]:
        """Return the sampling parameters that are reported to the trainer."""
        own = {"temperature": self._config.temperature, "top_p": self._config.top_p}
        return {**own, **self._server_sampling}

    async def scores_of(self, rollouts: Sequence[Rollout]) -> list[Score]:
        """Extract the answers of an item's rollouts and score those that exist.

        Returns:
            A score for each, shape (G,): 0 with the reason where there is no answer.

        Raises:
            ScoringUnavailableError: The worker pool gave no scores.
        """
        extractions = await extract_in_time(
            [rollout["messages"][-1]["content"] for rollout in rollouts],
            [rollout.get("thinking_open", False) for rollout in rollouts],
        )
        entry, dataset = rollouts[0]["rg_item"], rollouts[0]["dataset_obj"]
        answers = [e.answer for e in extractions if e.answer is not None]
        scored = iter(await self.scorer().score_group(dataset, entry, answers))
        return [
            Score(0.0, e.failure, None) if e.failure is not None else next(scored)
            for e in extractions
        ]

    async def score(self, rollouts: Sequence[Rollout]) -> dict[str, Any] | None:
        """Score a group, and update dumps, metrics and levels.

        Args:
            rollouts: Of one item, as the hook `score` takes them, shape (G,).

        Returns:
            What the trainer gets, in the order of the rollouts, shape (G,); None if the
            rewards are all equal and such groups are not sent.

        Raises:
            ScoringUnavailableError: The worker pool gave no scores.
        """
        scores = await self.scores_of(rollouts)
        # First what an answer is worth, then what its length takes of that.
        rewards = shaping.penalise_length(
            shaping.above_baseline(
                [score.value for score in scores],
                baseline_of(rollouts[0]["dataset_obj"]),
            ),
            list(map(self._penalised_length, rollouts)),
            self._length.tokens,
        )
        record = record_of(rollouts, scores, rewards)
        self._tell(record, list(map(mean_logprob, rollouts)))
        await self._dumps.record(record, self.versions)
        sends_all = not self._config.ensure_scores_are_not_same
        if not sends_all and not shaping.has_variance(rewards):
            return None
        return self._trainer_data(rollouts, record)

    def _penalised_length(self, rollout: Rollout) -> int:
        if self._config.length_penalty_counts == "completion":
            return completion_tokens(rollout)
        return len(rollout["tokens"])

    def _trainer_data(
        self, rollouts: Sequence[Rollout], record: GroupRecord
    ) -> dict[str, Any]:
        """Return the data for the trainer, with more fields for `process`.

        Only the fields that the API knows are sent.
        """
        finish_reasons = [rollout.finish_reason for rollout in record.rollouts]
        logprobs = [rollout.get("logprobs") for rollout in rollouts]
        data = {
            "tokens": [rollout["tokens"] for rollout in rollouts],
            "masks": [rollout["masks"] for rollout in rollouts],
            "scores": record.rewards,
            # The API takes a list of numbers for every rollout, or nothing.
            "inference_logprobs": None if None in logprobs else logprobs,
            "overrides": shaping.truncation_overrides(
                finish_reasons,
                mask_truncated=self._config.mask_too_long_completions,
            ),
            "group_overrides": {},
            "generation_params": self.sampled_with(),
            "task": record.task,
            "question": rollouts[0]["rg_item"].get("question"),
            "gold_answer": record.gold_answer,
            "answers": [rollout.answer for rollout in record.rollouts],
            "outcomes": [rollout.outcome for rollout in record.rollouts],
            "task_scores": record.scores,
            "finish_reasons": finish_reasons,
            "completion_tokens": [r.completion_tokens for r in record.rollouts],
            **record.origin,
        }
        if self._config.include_messages:
            data["messages"] = [
                [dict(message) for message in rollout["messages"]]
                for rollout in rollouts
            ]
        return data

    def _tell(self, record: GroupRecord, logprobs: Sequence[float | None]) -> None:
        """Tell the metrics, the levels and the log of a scored group.

        Args:
            record: Of the group.
            logprobs: The mean log-probability of each of its completions, shape (G,).
        """
        self._metrics.record_group(record)
        alarms = self._metrics.alarms.take(record, logprobs)
        for line in [*self._metrics.new_warnings(record), *alarms]:
            logger.warning("%s", line)
        change = self._feedback.take(
            record.task,
            record.mean_score,
            record.level,
            shaping.has_variance(record.rewards),
        )
        if change is not None:
            logger.info("%s", change)
        self._log(record)

    def _log(self, record: GroupRecord) -> None:
        """Log one group in ten in a line, and with `debug_logging` all, whole."""
        number = self._metrics.groups
        is_shown = number == 1 or number % GROUP_LINE_EVERY == 0
        level = logging.INFO if is_shown else logging.DEBUG
        if logger.isEnabledFor(level):
            logger.log(level, "%s", self._metrics.group_line(record))
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("  reference answer %.200r", record.gold_answer)
            for rollout in record.rollouts:
                logger.debug(
                    "  %s, answer %.200r: %s, score %.3f, reward %.3f",
                    rollout.outcome,
                    rollout.answer,
                    f"{rollout.formats or 'not scored'}"
                    f"{', normalized' * rollout.normalized}",
                    rollout.score,
                    rollout.reward,
                )
