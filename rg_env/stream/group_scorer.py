"""Scores of answers, from worker processes.

One call of a worker carries all answers of a group. An answer that uses up the CPU time
of its deadline is a 0 with `timeout`, one that ends two workers a 0 with
`scorer_error`. Any other failure gives no score, which must never count as a wrong
answer.

Workers find the scorer of an `Item` by task and parameters, and that of a dataset of
the library by its class and its own config. Any other object with
`score_answer(answer, entry)` is called in place.
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

MAX_ANSWERS = 256  # of one call of a worker
MAX_REPLY_BYTES = 2**16  # with their scores, some forty bytes each

WorkerSource = tuple[str, Any]
"""A task and its parameters, or a dataset's class and its pickled config."""


class ScoringUnavailableError(RunError):
    """The workers gave no scores; the group has none, which is not zeros."""


def _worker_source(dataset: Any) -> WorkerSource | None:
    """Return where workers find the scorer, None if it is called in place."""
    cls = type(dataset)
    if cls.__module__.startswith("reasoning_gym."):
        return f"{cls.__module__}:{cls.__qualname__}", pickle.dumps(dataset.config)
    source: WorkerSource | None = getattr(dataset, "worker_source", None)
    return source


@dataclasses.dataclass(frozen=True)
class GroupScorer:
    """Scores groups of answers in a worker pool.

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

        def scored(pool: WorkerPool) -> Coroutine[Any, Any, list[Score]]:
            scorer = dataclasses.replace(self, pool=pool)
            return scorer.score_group(dataset, entry, [answer])

        (score,) = run_blocking(scored, self.pool)
        return score

    async def score_group(
        self, dataset: Any, entry: Mapping[str, Any], answers: Sequence[str]
    ) -> list[Score]:
        """Score the answers of one group, each text once.

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
        """Do the same, with the pool's error in place of each missing score.

        After the first missing score, the remaining answers are not scored.
        """
        source = _worker_source(dataset)
        if source is None:
            score = self.rules.build_scorer("", entry, dataset.score_answer)
            return [
                self.rules.apply_partial_credit(score(answer)) for answer in answers
            ]
        # Megabytes would cost more to send than to reject.
        long = {a for a in answers if self.rules.is_too_long(a, entry)}
        found = {answer: Score(0.0, "rejected", answer) for answer in long}
        sent = [a for a in dict.fromkeys(answers) if a not in long]
        missing = PoolError()
        try:
            for first in range(0, len(sent), MAX_ANSWERS):
                portion = sent[first : first + MAX_ANSWERS]
                await self._find(found, source, entry, portion)
        except PoolError as error:
            missing = error
        return [found.get(answer, missing) for answer in answers]

    async def _find(
        self,
        found: dict[str, Score],
        source: WorkerSource,
        entry: Mapping[str, Any],
        answers: Sequence[str],
    ) -> None:
        """Add the scores of some answers to those that are found."""
        try:
            scores = await self._call(source, entry, answers)
        except (DeadlineExceededError, WorkerDiedError, WorkerLostError) as error:
            if len(answers) > 1:
                # One by one, the fault costs only its own answer.
                for answer in answers:
                    await self._find(found, source, entry, [answer])
                return
            if isinstance(error, WorkerLostError):
                raise
            is_late = isinstance(error, DeadlineExceededError)
            outcome = "timeout" if is_late else "scorer_error"
            scores = [Score(0.0, outcome, answers[0])]
        found.update(
            zip(answers, map(self.rules.apply_partial_credit, scores), strict=True)
        )

    async def _call(
        self, source: WorkerSource, entry: Mapping[str, Any], answers: Sequence[str]
    ) -> list[Score]:
        task, params = source
        # Builds the dataset, and loads what scorers load at first, before the deadline
        # runs.
        prepare = functools.partial(
            worker_jobs.prepare_scores, task, params, entry, self.rules
        )
        options = CallOptions(
            max_reply_bytes=MAX_REPLY_BYTES,
            read=functools.partial(read_scores, answers),
            # Nothing is known of the scorers of other tasks, mixtures and datasets.
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
