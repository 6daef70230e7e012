"""From the rollouts of an item to what the trainer gets, and to all who learn of it.

Rollouts, the record of a group and the trainer's data list the same in the same order.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.atropos.rollout_requests import LengthLimit
from rg_env.inference.completions import PROMPT_LOGPROB, PROMPT_MASK
from rg_env.items.group_scorer import GroupScorer, TaskHandle, shared_pool
from rg_env.off_loop import off_loop
from rg_env.reports.metrics import Metrics
from rg_env.rollouts import shaping
from rg_env.rollouts.group_record import GroupRecord, Provenance, RolloutRecord
from rg_env.rollouts.run_dumps import Dumps
from rg_env.scoring.extraction import Extraction, extract_answer
from rg_env.scoring.score import Score
from rg_env.tasks.feedback import Feedback
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

FRAMEWORK_VERSION = metadata.version("atroposlib")

GROUP_LINE_EVERY = 10
"""Groups of which one has its scores in the log, without `debug_logging`."""


FEW_CHARS, FEW_TAGS = 2**18, 2**9
"""A group with so much text and so many tags is searched in place, in half a
millisecond."""

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


def _extracted(rollouts: Sequence[Rollout]) -> list[Extraction]:
    return [
        extract_answer(
            rollout["messages"][-1]["content"],
            thinking_open=rollout.get("thinking_open", False),
        )
        for rollout in rollouts
    ]


async def _extract_all(rollouts: Sequence[Rollout]) -> list[Extraction]:
    texts = [rollout["messages"][-1]["content"] for rollout in rollouts]
    is_short = sum(map(len, texts)) <= FEW_CHARS
    if is_short and sum(text.count("<") for text in texts) <= FEW_TAGS:
        return _extracted(rollouts)
    return await off_loop(_extracted, rollouts)


async def score_rollouts(
    scorer: GroupScorer, rollouts: Sequence[Rollout]
) -> list[Score]:
    """Extract the answers of one item's rollouts and score those that exist.

    Returns:
        One score per rollout, shape (G,); without an answer 0, with the reason.

    Raises:
        ScoringUnavailableError: The worker pool gave no scores.
    """
    extractions = await _extract_all(rollouts)
    answers = [e.answer for e in extractions if e.answer is not None]
    item = rollouts[0]
    scored = await scorer.score_group(item["dataset_obj"], item["rg_item"], answers)
    scores = iter(scored)
    return [
        Score(0.0, e.failure, None) if e.failure is not None else next(scores)
        for e in extractions
    ]


def task_of(entry: Mapping[str, Any], dataset: Any) -> str:
    """Return the task that made an entry."""
    if isinstance(dataset, TaskHandle):
        return dataset.task
    return str((entry.get("metadata") or {}).get("source_dataset", "unknown"))


def baseline_of(rollouts: Sequence[Rollout]) -> float:
    """Return the baseline of one item's rollouts; 0 for an item from outside."""
    dataset = rollouts[0]["dataset_obj"]
    return dataset.baseline if isinstance(dataset, TaskHandle) else 0.0


def build_record(
    rollouts: Sequence[Rollout], scores: Sequence[Score], rewards: Sequence[float]
) -> GroupRecord:
    """Put together what is known of a scored group."""
    entry, dataset = rollouts[0]["rg_item"], rollouts[0]["dataset_obj"]
    provenance = None  # nothing regenerates an item from outside
    if isinstance(dataset, TaskHandle):
        provenance = Provenance(
            split=dataset.split,
            index=dataset.index,
            seed=dataset.seed,
            level=dataset.level,
            params=dict(dataset.params),
        )
    return GroupRecord(
        task=task_of(entry, dataset),
        rollouts=[
            RolloutRecord(
                conversation=[dict(message) for message in rollout["messages"]],
                score=score.value,
                reward=reward,
                outcome=score.outcome,
                answer=score.answer,
                finish_reason=rollout.get("finish_reason"),
                prompt_tokens=len(rollout["tokens"]) - completion_tokens(rollout),
                completion_tokens=completion_tokens(rollout),
                normalized=score.normalized,
                formats={"bare": f.bare, "tagged": f.tagged}
                if (f := score.formats)
                else None,
            )
            for rollout, score, reward in zip(rollouts, scores, rewards, strict=True)
        ],
        gold_answer=entry.get("answer"),
        provenance=provenance,
        baseline=baseline_of(rollouts),
    )


def build_trainer_group(
    rollouts: Sequence[Rollout],
    record: GroupRecord,
    overrides: list[dict[str, Any]],
    *,
    sampling: Mapping[str, Any],
    with_messages: bool,
) -> dict[str, Any]:
    """Return what the trainer gets, and what makes the rows of `process` useful.

    The API takes the fields it knows and our sending leaves the others out.
    """
    logprobs = [rollout.get("logprobs") for rollout in rollouts]
    group = {
        "tokens": [rollout["tokens"] for rollout in rollouts],
        "masks": [rollout["masks"] for rollout in rollouts],
        "scores": [rollout.reward for rollout in record.rollouts],
        "inference_logprobs": None if None in logprobs else logprobs,
        "overrides": overrides,
        "group_overrides": {},
        "generation_params": dict(sampling),
        "task": record.task,
        "question": rollouts[0]["rg_item"].get("question"),
        "gold_answer": record.gold_answer,
        "answers": [rollout.answer for rollout in record.rollouts],
        "outcomes": [rollout.outcome for rollout in record.rollouts],
        "task_scores": record.scores,
        "finish_reasons": [rollout.finish_reason for rollout in record.rollouts],
        "completion_tokens": [r.completion_tokens for r in record.rollouts],
        **record.origin,
    }
    if with_messages:
        group["messages"] = [
            [dict(message) for message in rollout["messages"]] for rollout in rollouts
        ]
    return group


class GroupScoring:
    """Scores groups and tells the result to dumps, metrics and levels.

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
        extra: Mapping[str, Any],
    ) -> None:
        self._config = config
        self._length = length
        self._dumps = dumps
        self._metrics = metrics
        self._feedback = feedback
        self._extra = extra
        self.pool: WorkerPool | None = None
        self.versions = {"atroposlib": FRAMEWORK_VERSION}

    def scorer(self) -> GroupScorer:
        """Return what scores answers, in workers."""
        config = self._config
        pool = self.pool or shared_pool(tuple(config.task_modules))
        return GroupScorer(pool, config.scoring_deadline_s, config.scoring_rules)

    def sampled_with(self) -> dict[str, Any]:
        """Return what the trainer is told that completions are sampled with."""
        own = {"temperature": self._config.temperature, "top_p": self._config.top_p}
        return {**own, **self._extra}

    async def trainer_group(
        self, rollouts: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any] | None:
        """Score the rollouts of one item, one dict per rollout, see `Rollout`.

        Returns:
            What the trainer gets, in the same order, shape (G,); None if the rewards
            are all equal and such groups are not sent.

        Raises:
            ScoringUnavailableError: The worker pool gave no scores.
        """
        scores = await score_rollouts(self.scorer(), rollouts)
        values = [score.value for score in scores]
        # First what an answer is worth, then what its length takes of that.
        rewards = shaping.penalise_length(
            shaping.above_baseline(values, baseline_of(rollouts)),
            [self._penalised_length(rollout) for rollout in rollouts],
            self._length.tokens,
        )
        record = build_record(rollouts, scores, rewards)
        self._tell(record, scores, [mean_logprob(rollout) for rollout in rollouts])
        await self._dumps.record(record, self.versions)
        sends_all = not self._config.ensure_scores_are_not_same
        if not sends_all and not shaping.has_variance(rewards):
            return None
        overrides = shaping.truncation_overrides(
            [rollout.get("finish_reason") for rollout in rollouts],
            mask_truncated=self._config.mask_too_long_completions,
        )
        return build_trainer_group(
            rollouts,
            record,
            overrides,
            sampling=self.sampled_with(),
            with_messages=self._config.include_messages,
        )

    async def one_score(self, rollout: Mapping[str, Any]) -> Score:
        """Score a rollout that belongs to no group and of which nobody is told."""
        return (await score_rollouts(self.scorer(), [rollout]))[0]

    def _penalised_length(self, rollout: Mapping[str, Any]) -> int:
        if self._config.length_penalty_counts == "completion":
            return completion_tokens(rollout)
        return len(rollout["tokens"])

    def _tell(
        self,
        record: GroupRecord,
        scores: Sequence[Score],
        logprob_means: Sequence[float | None],
    ) -> None:
        """Tell the metrics, the levels and the log of a scored group."""
        self._metrics.record_group(record)
        alarms = self._metrics.alarms.take(record, logprob_means)
        for line in [*self._metrics.new_warnings(record), *alarms]:
            logger.warning("%s", line)
        change = self._feedback.take(
            record.task,
            record.mean_score,
            record.level,
            shaping.has_variance([rollout.reward for rollout in record.rollouts]),
        )
        if change is not None:
            logger.info("%s", change)
        self._log(record, scores)

    def _log(self, record: GroupRecord, scores: Sequence[Score]) -> None:
        """Log one group in ten in a line, and with `debug_logging` all, whole."""
        number = self._metrics.groups
        is_shown = number == 1 or number % GROUP_LINE_EVERY == 0
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
                f"{score.formats or 'not scored'}{', normalized' * score.normalized}",
                rollout.score,
                rollout.reward,
            )
