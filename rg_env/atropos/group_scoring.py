"""From the rollouts of an item to what the trainer gets, and to all who learn of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rg_env.atropos import group_forms
from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.items.group_scorer import GroupScorer
from rg_env.reports.metrics import Metrics
from rg_env.rollouts import shaping
from rg_env.rollouts.group_record import GroupRecord
from rg_env.rollouts.run_dumps import Dumps
from rg_env.scoring.score import Score
from rg_env.tasks.feedback import Feedback

logger = logging.getLogger(__name__)

GROUP_LINE_EVERY = 10
"""Groups of which one has its scores in the log, without `debug_logging`."""


class GroupScoring:
    """Scores groups and tells the result to dumps, metrics and levels.

    Args:
        config: The settings.
        scorer: Returns what scores answers, in workers.
        dumps: Takes every scored group.
        metrics: Counts it.
        feedback: Moves levels and weights by it.
        versions: Returns the versions that a dumped line names.
        sampling: What the trainer is told that completions are sampled with.

    Attributes:
        scores_since_log: Scores in [0, 1] since W&B was last written.
        correct_since_log: 1.0 for each of these rollouts that counts as correct, 0.0
            for the others.
    """

    def __init__(
        self,
        config: ReasoningGymEnvConfig,
        scorer: Callable[[], GroupScorer],
        dumps: Dumps,
        metrics: Metrics,
        feedback: Feedback,
        versions: Callable[[], Mapping[str, str]],
        sampling: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._config = config
        self._scorer = scorer
        self._dumps = dumps
        self._metrics = metrics
        self._feedback = feedback
        self._versions = versions
        self._sampling = sampling
        self.scores_since_log: list[float] = []
        self.correct_since_log: list[float] = []

    async def trainer_group(
        self, rollouts: Sequence[Mapping[str, Any]], limit_tokens: int
    ) -> dict[str, Any] | None:
        """Score the rollouts of one item.

        Args:
            rollouts: One dict per rollout, see `group_forms.Rollout`, shape (G,).
            limit_tokens: The longest sequence that could be generated.

        Returns:
            What the trainer gets, in the same order, shape (G,); None if the rewards
            are all equal and such groups are not sent.

        Raises:
            ScoringUnavailable: The worker pool gave no scores.
        """
        scores = await group_forms.score_rollouts(self._scorer(), rollouts)
        values = [score.value for score in scores]
        # First what an answer is worth, then what its length takes of that.
        rewards = shaping.penalise_length(
            shaping.above_baseline(values, group_forms.baseline_of(rollouts)),
            [self._penalised_length(rollout) for rollout in rollouts],
            limit_tokens,
        )
        record = group_forms.build_record(rollouts, scores, rewards)
        self._tell(record, scores)
        await self._dumps.record(record, self._versions())
        if self._config.ensure_scores_are_not_same and not shaping.has_signal(rewards):
            return None
        overrides = shaping.truncation_overrides(
            [rollout.get("finish_reason") for rollout in rollouts],
            mask_truncated=self._config.mask_too_long_completions,
        )
        return group_forms.build_trainer_group(
            rollouts,
            record,
            overrides,
            sampling=self._sampling(),
            with_messages=self._config.include_messages,
        )

    async def one_score(self, rollout: Mapping[str, Any]) -> Score:
        """Score a rollout that belongs to no group and of which nobody is told.

        Raises:
            ScoringUnavailable: The worker pool gave no score.
        """
        return (await group_forms.score_rollouts(self._scorer(), [rollout]))[0]

    def take_since_log(self) -> tuple[list[float], list[float]]:
        """Return `correct_since_log` and `scores_since_log`, and begin new ones."""
        taken = self.correct_since_log, self.scores_since_log
        self.correct_since_log, self.scores_since_log = [], []
        return taken

    def _penalised_length(self, rollout: Mapping[str, Any]) -> int:
        if self._config.length_penalty_counts == "completion":
            return group_forms.completion_tokens(rollout)
        return len(rollout["tokens"])

    def _tell(self, record: GroupRecord, scores: Sequence[Score]) -> None:
        """Tell the metrics, the levels and the log of a scored group."""
        self._metrics.record_group(record)
        for line in self._metrics.new_warnings(record):
            logger.warning("%s", line)
        self.scores_since_log.extend(record.scores)
        self.correct_since_log.extend(record.correct)
        change = self._feedback.take(
            record.task,
            record.mean_score,
            record.level,
            shaping.has_signal([rollout.reward for rollout in record.rollouts]),
        )
        if change is not None:
            logger.info("%s", change)
        self._log(record, scores)

    def _log(self, record: GroupRecord, scores: Sequence[Score]) -> None:
        """Log one group in ten in a line, and with `debug_logging` all, whole."""
        is_shown = self._is_shown(self._metrics.groups)
        level = logging.INFO if is_shown else logging.DEBUG
        if logger.isEnabledFor(level):
            logger.log(level, "%s", self._metrics.group_line(record))
        if not logger.isEnabledFor(logging.DEBUG):
            return
        logger.debug("  gold answer %.200r", record.gold_answer)
        for rollout, score in zip(record.rollouts, scores, strict=True):
            logger.debug(
                "  %s, answer %.200r: %s, score %.3f, reward %.3f",
                rollout.outcome,
                rollout.answer,
                f"{score.formats or 'not asked'}{', undressed' * score.undressed}",
                rollout.score,
                rollout.reward,
            )

    @staticmethod
    def _is_shown(number: int) -> bool:
        """Say whether a group is one whose scores are always in the log."""
        return number == 1 or number % GROUP_LINE_EVERY == 0
