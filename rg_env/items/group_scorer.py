"""The answers in the completions of a group, and their scores from a worker process.

One call carries all answers of a group, or a portion of many. If that fails, they are
scored one by one, so that the fault costs only its own answer: one that uses up the CPU
time of its deadline is a 0 with `timeout`, one that ends two workers a 0 with
`scorer_error`. The data set is built, and what a scorer loads at first is loaded,
before that time begins.
Whatever else fails is no fault of an answer and raises `ScoringUnavailableError`: that
is no score.

Three kinds of dataset object are scored:
    - our `TaskHandle`, or another `ItemSpec`: in a worker, by task and parameters;
    - a dataset of the library: in a worker, by its class and its own config;
    - any other object with `score_answer(answer, entry)`: in place, so that a test
      can pass its own.
"""

from __future__ import annotations

import dataclasses
import functools
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rg_env.errors import RunError
from rg_env.items import worker_jobs
from rg_env.off_loop import off_loop
from rg_env.scoring.extraction import Extraction, extract_answer
from rg_env.scoring.score import Score, read_rows
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.table import RUNNING, source_task
from rg_env.tasks.item_stream import ItemSpec
from rg_env.tasks.library_import import TASKS
from rg_env.workers.call_runner import Trust
from rg_env.workers.pool_errors import (
    DeadlineExceededError,
    PoolError,
    WorkerDiedError,
    WorkerLostError,
)
from rg_env.workers.worker_pool import WorkerPool, default_pool_size, run_blocking

ANSWER_DEADLINE_S = 5.0
"""CPU time that scoring one answer may take, where no setting says it."""

MOST_ANSWERS, MOST_CHARS = 256, 2**20
"""The most answers and characters of one call of a worker."""

FEW_CHARS, FEW_TAGS = 2**18, 2**9
"""A group with so much text and so many tags is searched in place, in half a
millisecond."""


def extract_answers(
    texts: Sequence[str], thinking_open: Sequence[bool]
) -> list[Extraction]:
    """Return the answer of each completion, or why there is none; see `extract_answer`.

    Args:
        texts: The completions, shape (G,).
        thinking_open: Whether the prompt of each has ended with `<think>`, shape (G,).
    """
    return [
        extract_answer(text, thinking_open=is_open)
        for text, is_open in zip(texts, thinking_open, strict=True)
    ]


async def extract_in_time(
    texts: Sequence[str], thinking_open: Sequence[bool]
) -> list[Extraction]:
    """As `extract_answers`, in a thread where it takes long."""
    is_short = sum(map(len, texts)) <= FEW_CHARS
    if is_short and sum(text.count("<") for text in texts) <= FEW_TAGS:
        return extract_answers(texts, thinking_open)
    return await off_loop(extract_answers, texts, thinking_open)


class ScoringUnavailableError(RunError):
    """The workers gave no scores; the group has none, which is not zeros."""


_shared: dict[tuple[str, ...], WorkerPool] = {}


def shared_pool(task_modules: tuple[str, ...] = ()) -> WorkerPool:
    """Return this process's pool for all that is scored outside a run.

    A caller that waits for each call has one worker; the others are for threads and
    coroutines that call at the same time.
    """
    found = _shared.get(task_modules)
    if found is None:
        preload = worker_jobs.preload_of(task_modules)
        new = WorkerPool(default_pool_size(), preload=preload)
        # Without a lock, which a fork could leave taken in the child.
        found = _shared.setdefault(task_modules, new)
        if found is not new:
            new.close()
    return found


@dataclasses.dataclass(frozen=True, repr=False)
class TaskHandle(ItemSpec):
    """The dataset object of our items: small, pickles, scores in a worker.

    Attributes:
        baseline: What guessing scores at such items, in [0, 1); no reward has it.
        deadline_s: CPU time that scoring one answer may take.
        task_modules: Those that a worker has to know; see `worker_jobs.preload_of`.
    """

    baseline: float = 0.0
    deadline_s: float = ANSWER_DEADLINE_S
    rules: ScoringRules = worker_jobs.DEFAULT_RULES
    task_modules: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Stay short: the framework formats every item into its log."""
        return f"<{self.task} {self.split} #{self.index}>"

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        """Score one answer in a worker process; blocks until it is done.

        Raises:
            ScoringUnavailableError: The pool gave no score.
        """
        if answer is None:
            return 0.0
        pool = shared_pool(self.task_modules)
        scorer = GroupScorer(pool, self.deadline_s, self.rules)
        return scorer.score_blocking(self, entry, answer).value


MAX_REPLY_BYTES = 2**16
"""The longest reply with the scores of a group, some forty bytes each."""


def scores_of(
    answers: Sequence[str],
    brief: bool = False,
    prepare: Callable[[], object] | None = None,
) -> Trust:
    """Return how far a worker that scores these answers is trusted."""
    read = functools.partial(read_rows, answers)
    return Trust(MAX_REPLY_BYTES, read, brief, prepare)


def _is_foreign(dataset: Any) -> bool:
    is_ours = isinstance(dataset, ItemSpec)
    return not is_ours and not type(dataset).__module__.startswith("reasoning_gym.")


def _failed(answer: str, error: PoolError) -> Score | ScoringUnavailableError:
    if isinstance(error, DeadlineExceededError):
        return Score(0.0, "timeout", answer)
    if isinstance(error, WorkerDiedError):
        return Score(0.0, "scorer_error", answer)
    none = ScoringUnavailableError(f"no score from the worker pool: {error}")
    none.__cause__ = error
    return none


def _portions(answers: Sequence[str], most: int) -> Iterator[list[str]]:
    """Yield the answers in order, in portions that fit into one call of a worker."""
    portion: list[str] = []
    chars = 0
    for answer in answers:
        if portion and (len(portion) == most or chars + len(answer) > MOST_CHARS):
            yield portion
            portion, chars = [], 0
        portion.append(answer)
        chars += len(answer)
    if portion:
        yield portion


@dataclasses.dataclass(frozen=True)
class GroupScorer:
    """Scores groups of answers in a worker pool."""

    pool: WorkerPool
    deadline_s: float = ANSWER_DEADLINE_S
    rules: ScoringRules = worker_jobs.DEFAULT_RULES

    def score_blocking(
        self, dataset: Any, entry: Mapping[str, Any], answer: str
    ) -> Score:
        """Score one answer and wait for it; raises as `score_group`."""

        async def scored(pool: WorkerPool) -> Score:
            scorer = dataclasses.replace(self, pool=pool)
            (score,) = await scorer.score_group(dataset, entry, [answer])
            return score

        return run_blocking(scored, self.pool)

    async def score_group(
        self, dataset: Any, entry: Mapping[str, Any], answers: Sequence[str]
    ) -> list[Score]:
        """Score the answers of one group, each text once.

        Raises:
            ScoringUnavailableError: The pool gave no score for one of them.
        """
        scores: list[Score] = []
        for found in await self.score_each(dataset, entry, answers):
            if isinstance(found, ScoringUnavailableError):
                raise found
            scores.append(found)
        return scores

    async def score_each(
        self, dataset: Any, entry: Mapping[str, Any], answers: Sequence[str]
    ) -> list[Score | ScoringUnavailableError]:
        """The same as `score_group`, but with an error in place of each missing score.

        After the first missing score, the remaining answers are not scored.
        """
        if _is_foreign(dataset):
            here = self.rules.scoring("", entry, dataset.score_answer)
            return list(map(here, answers))
        # Megabytes would cost more to send than to refuse.
        long = {a for a in answers if self.rules.too_long(a, entry)}
        by_answer: dict[str, Score | ScoringUnavailableError]
        by_answer = {answer: Score(0.0, "rejected", answer) for answer in long}
        sent = [a for a in dict.fromkeys(answers) if a not in by_answer]
        scores = await self._score_distinct(dataset, entry, sent, MOST_ANSWERS)
        by_answer.update(zip(sent, scores, strict=True))
        return [by_answer[answer] for answer in answers]

    async def _score_distinct(
        self, dataset: Any, entry: Mapping[str, Any], answers: list[str], at_once: int
    ) -> list[Score | ScoringUnavailableError]:
        found: list[Score | ScoringUnavailableError] = []
        for portion in _portions(answers, at_once):
            found += await self._score_portion(dataset, entry, portion)
            if isinstance(found[-1], ScoringUnavailableError):
                return found + [found[-1]] * (len(answers) - len(found))
        return found

    async def _score_portion(
        self, dataset: Any, entry: Mapping[str, Any], answers: list[str]
    ) -> list[Score | ScoringUnavailableError]:
        call, limits = self._job(dataset, entry, answers)
        try:
            return list(await self.pool.run(*call, **limits))
        except (DeadlineExceededError, WorkerDiedError, WorkerLostError) as error:
            if len(answers) == 1:
                return [_failed(answers[0], error)]
            return await self._score_distinct(dataset, entry, answers, at_once=1)
        except PoolError as error:
            return [_failed(answers[0], error)] * len(answers)

    def _job(
        self, dataset: Any, entry: Mapping[str, Any], answers: list[str]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the call of a worker: the job with its arguments, and its limits."""
        how = (entry, answers, self.rules)
        call: tuple[Any, ...]
        if isinstance(dataset, ItemSpec):
            task, params = dataset.task, dict(dataset.params)
            call = (worker_jobs.score_answers, task, params, *how)
            prepare = functools.partial(
                worker_jobs.prepare_scores, task, params, entry, self.rules
            )
            source = source_task(task, entry)
            # Nobody knows what the scorer of a user's own task does.
            may_run = source in RUNNING or source not in TASKS
        else:
            cls = type(dataset)
            where = (cls.__module__, cls.__qualname__, pickle.dumps(dataset.config))
            call = (worker_jobs.score_answers_by_config, *where, *how)
            prepare = functools.partial(
                worker_jobs.prepare_scores_by_config, *where, entry, self.rules
            )
            may_run = True  # nobody knows of a config which task it is of
        trust = scores_of(answers, may_run, prepare)
        return call, {"deadline_s": self.deadline_s, "trust": trust}
