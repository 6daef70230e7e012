"""Scores and rewards of groups, and whoever is informed about them."""

from __future__ import annotations

import logging
from importlib import metadata
from typing import Any

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.atropos.group import Group, Rollout, completion_tokens, mean_logprob
from rg_env.atropos.rollout_requests import LengthLimit
from rg_env.inference.connection import sampling_extra_of
from rg_env.items.group_scorer import GroupScorer, extract_in_time, shared_pool
from rg_env.reports.metrics import Metrics
from rg_env.rollouts import shaping
from rg_env.rollouts.group_record import GroupRecord
from rg_env.rollouts.run_dumps import Dumps
from rg_env.scoring.score import Score
from rg_env.tasks.feedback import Feedback
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

FRAMEWORK_VERSION = metadata.version("atroposlib")

GROUP_LINE_EVERY = 10
"""Groups of which one has its scores in the log, without `debug_logging`."""


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

    async def score_answers(self, group: Group) -> None:
        """Extract the answers of a group's rollouts and score those that exist.

        A rollout without an answer has score 0, with the reason.

        Raises:
            ScoringUnavailableError: The worker pool gave no scores.
        """
        extractions = await extract_in_time(
            [rollout["messages"][-1]["content"] for rollout in group.rollouts],
            [rollout.get("thinking_open", False) for rollout in group.rollouts],
        )
        answers = [e.answer for e in extractions if e.answer is not None]
        scored = await self.scorer().score_group(group.dataset, group.entry, answers)
        scores = iter(scored)
        group.scores = [
            Score(0.0, e.failure, None) if e.failure is not None else next(scores)
            for e in extractions
        ]

    async def score(self, group: Group) -> dict[str, Any] | None:
        """Score a group, and update dumps, metrics and levels.

        Returns:
            What the trainer gets, in the order of the rollouts, shape (G,); None if the
            rewards are all equal and such groups are not sent.

        Raises:
            ScoringUnavailableError: The worker pool gave no scores.
        """
        await self.score_answers(group)
        # First what an answer is worth, then what its length takes of that.
        group.rewards = shaping.penalise_length(
            shaping.above_baseline(
                [score.value for score in group.scores], group.baseline
            ),
            list(map(self._penalised_length, group.rollouts)),
            self._length.tokens,
        )
        group.record = group.make_record()
        self._tell(group, group.record)
        await self._dumps.record(group.record, self.versions)
        sends_all = not self._config.ensure_scores_are_not_same
        if not sends_all and not shaping.has_variance(group.rewards):
            return None
        return self._trainer_data(group, group.record)

    def _penalised_length(self, rollout: Rollout) -> int:
        if self._config.length_penalty_counts == "completion":
            return completion_tokens(rollout)
        return len(rollout["tokens"])

    def _trainer_data(self, group: Group, record: GroupRecord) -> dict[str, Any]:
        """Return the data for the trainer, with more fields for `process`.

        Only the fields that the API knows are sent.
        """
        finish_reasons = [rollout.finish_reason for rollout in record.rollouts]
        logprobs = [rollout.get("logprobs") for rollout in group.rollouts]
        data = {
            "tokens": [rollout["tokens"] for rollout in group.rollouts],
            "masks": [rollout["masks"] for rollout in group.rollouts],
            "scores": list(group.rewards),
            # The API takes a list of numbers for every rollout, or nothing.
            "inference_logprobs": None if None in logprobs else logprobs,
            "overrides": shaping.truncation_overrides(
                finish_reasons,
                mask_truncated=self._config.mask_too_long_completions,
            ),
            "group_overrides": {},
            "generation_params": self.sampled_with(),
            "task": record.task,
            "question": group.entry.get("question"),
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
                for rollout in group.rollouts
            ]
        return data

    def _tell(self, group: Group, record: GroupRecord) -> None:
        """Tell the metrics, the levels and the log of a scored group."""
        self._metrics.record_group(record)
        logprob_means = list(map(mean_logprob, group.rollouts))
        alarms = self._metrics.alarms.take(record, logprob_means)
        for line in [*self._metrics.new_warnings(record), *alarms]:
            logger.warning("%s", line)
        change = self._feedback.take(
            record.task,
            record.mean_score,
            record.level,
            shaping.has_variance(group.rewards),
        )
        if change is not None:
            logger.info("%s", change)
        self._log(group, record)

    def _log(self, group: Group, record: GroupRecord) -> None:
        """Log one group in ten in a line, and with `debug_logging` all, whole."""
        number = self._metrics.groups
        is_shown = number == 1 or number % GROUP_LINE_EVERY == 0
        level = logging.INFO if is_shown else logging.DEBUG
        if logger.isEnabledFor(level):
            logger.log(level, "%s", self._metrics.group_line(record))
        if not logger.isEnabledFor(logging.DEBUG):
            return
        logger.debug("  reference answer %.200r", record.gold_answer)
        for score, reward in zip(group.scores, group.rewards, strict=True):
            logger.debug(
                "  %s, answer %.200r: %s, score %.3f, reward %.3f",
                score.outcome,
                score.answer,
                f"{score.formats or 'not scored'}{', normalized' * score.normalized}",
                score.value,
                reward,
            )
