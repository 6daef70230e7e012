"""Scores of answers, from worker processes.

One call of a worker scores all answers of a group. An answer that uses up the CPU time
of its deadline is a 0 with `timeout`, and one that ends two workers is a 0 with
`scorer_error`. Any other failure gives no score, which must never count as a wrong
answer.

Workers find the scorer of an `Item` by task and parameters, and the scorer of a dataset
of the library by its class and its config. Any other object with
`score_answer(answer, entry)` is called in this process.
"""

from __future__ import annotations

import dataclasses
import functools
import pickle
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, cast

from rg_env.errors import RunError
from rg_env.library import worker_jobs
from rg_env.library.datasets import ANSWER_DEADLINE_S
from rg_env.library.registry import TASKS
from rg_env.reward.score import DEFAULT_RULES, Score, ScoringRules, read_scores
from rg_env.task_rules.table import CODE_RUNNING_TASKS
from rg_env.workers.call import (
    CallOptions,
    DeadlineExceededError,
    PoolError,
    WorkerDiedError,
    WorkerLostError,
)
from rg_env.workers.worker_pool import WorkerPool, run_blocking

MAX_ANSWERS_PER_CALL = 256
MAX_REPLY_BYTES = 2**16  # a score takes about forty bytes

WorkerSource = tuple[str, Any]
"""A task and its parameters, or a dataset's class and its pickled config."""


class ScoringUnavailableError(RunError):
    """The workers gave no scores, so the group has none; never count it as zeros."""


def _worker_source(dataset: Any) -> WorkerSource | None:
    """Return where workers find the scorer, None if it is called in this process."""
    cls = type(dataset)
    if cls.__module__.startswith("reasoning_gym."):
        return f"{cls.__module__}:{cls.__qualname__}", pickle.dumps(dataset.config)
    source: WorkerSource | None = getattr(dataset, "worker_source", None)
    return source


@dataclasses.dataclass(frozen=True)
class GroupScorer:
    """Scores groups of answers in a worker pool.

    The `dataset` of a method is an `Item`, a dataset of the library or another object
    with `score_answer(answer, entry)`.

    Attributes:
        pool: Its workers score the answers.
        deadline_s: CPU time of each call of a worker.
        rules: How answers are scored.

    Example:
        score = GroupScorer(pool).score_blocking(item, item.entry, "12")
    """

    pool: WorkerPool
    deadline_s: float = ANSWER_DEADLINE_S
    rules: ScoringRules = DEFAULT_RULES

    def score_blocking(
        self, dataset: Any, entry: Mapping[str, Any], answer: str
    ) -> Score:
        """Score one answer and wait for it; raises as `score_group`."""

        def score_in(pool: WorkerPool) -> Coroutine[Any, Any, list[Score]]:
            scorer = dataclasses.replace(self, pool=pool)
            return scorer.score_group(dataset, entry, [answer])

        (score,) = run_blocking(score_in, self.pool)
        return score

    async def score_group(
        self, dataset: Any, entry: Mapping[str, Any], answers: Sequence[str]
    ) -> list[Score]:
        """Score the answers of one group, equal texts only once.

        Raises:
            ScoringUnavailableError: The pool gave no score for one of them.
        """
        scores: list[Score] = []
        for score in await self.score_each(dataset, entry, answers):
            if isinstance(score, PoolError):
                reason = f"no score from the worker pool: {score}"
                raise ScoringUnavailableError(reason) from score
            scores.append(score)
        return scores

    async def score_each(
        self, dataset: Any, entry: Mapping[str, Any], answers: Sequence[str]
    ) -> list[Score | PoolError]:
        """Do as `score_group`, with the pool's error in place of each missing score.

        After the first missing score, the remaining answers are not scored.
        """
        source = _worker_source(dataset)
        if source is None:
            score = self.rules.build_scorer("", entry, dataset.score_answer)
            return [
                self.rules.apply_partial_credit(score(answer)) for answer in answers
            ]
        # Answers of megabytes are rejected here, without being sent to a worker.
        long = {a for a in answers if self.rules.is_too_long(a, entry)}
        scores = {answer: Score(0.0, "rejected", answer) for answer in long}
        sent = [a for a in dict.fromkeys(answers) if a not in long]
        missing = PoolError()
        try:
            for start in range(0, len(sent), MAX_ANSWERS_PER_CALL):
                batch = sent[start : start + MAX_ANSWERS_PER_CALL]
                await self._score_into(scores, source, entry, batch)
        except PoolError as error:
            missing = error
        return [scores.get(answer, missing) for answer in answers]

    async def _score_into(
        self,
        scores: dict[str, Score],
        source: WorkerSource,
        entry: Mapping[str, Any],
        answers: Sequence[str],
    ) -> None:
        """Score the answers in one call, after a fault one by one, into `scores`."""
        try:
            new_scores = await self._call(source, entry, answers)
        except (DeadlineExceededError, WorkerDiedError, WorkerLostError) as error:
            if len(answers) > 1:
                # One by one, so that the fault costs the score of one answer only.
                for answer in answers:
                    await self._score_into(scores, source, entry, [answer])
                return
            if isinstance(error, WorkerLostError):
                raise
            is_late = isinstance(error, DeadlineExceededError)
            outcome = "timeout" if is_late else "scorer_error"
            new_scores = [Score(0.0, outcome, answers[0])]
        scores.update(
            zip(answers, map(self.rules.apply_partial_credit, new_scores), strict=True)
        )

    async def _call(
        self, source: WorkerSource, entry: Mapping[str, Any], answers: Sequence[str]
    ) -> list[Score]:
        task, params = source
        # Builds the dataset, and loads what scorers load at their first call, before
        # the deadline runs.
        prepare = functools.partial(
            worker_jobs.prepare_scores, task, params, entry, self.rules
        )
        options = CallOptions(
            max_reply_bytes=MAX_REPLY_BYTES,
            read=functools.partial(read_scores, answers),
            # The scorers of other tasks, mixtures and datasets are unknown.
            untrusted=task in CODE_RUNNING_TASKS or task not in TASKS,
            prepare=prepare,
        )
        rows = await self.pool.run(
            worker_jobs.score_answers,
            task,
            params,
            entry,
            list(answers),
            self.rules,
            deadline_s=self.deadline_s,
            options=options,
        )
        return cast(list[Score], rows)  # made by `read`
