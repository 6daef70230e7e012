"""Saved completions scored again, with the items that the installed library makes.

Each answer has three scores: of the library alone, with the fixes of its scorers, and
with normalization as well, which is ours. All three are behind the guards. A completion
whose item is not made again, or not used, has none, nor has one that was given none:

    unmatched        the library makes another question there, or nothing
    not_used         its reference answer is incorrect, or its board cannot be seen
    timeout          scoring used up its CPU time
    unscored         workers were killed or stood still, again and again
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from rg_env.evaluation.samples import Sample, grouped
from rg_env.items import worker_jobs
from rg_env.items.group_scorer import GroupScorer, ScoringUnavailableError
from rg_env.items.installed_library import read_library
from rg_env.items.item import Item, is_unusable, why_no_entry
from rg_env.off_loop import off_loop
from rg_env.scoring.extraction import extract_answer
from rg_env.scoring.score import UNSCORED, Score
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.rules import MIXTURE
from rg_env.tasks.library import LibraryDescription
from rg_env.workers.pool_errors import (
    PoolClosedError,
    PoolError,
    PreloadError,
    WorkerLostError,
)
from rg_env.workers.worker_pool import WorkerPool

RULES = {
    "library": ScoringRules(scorer_fixes=False, normalize_answers=False),
    "fixes": ScoringRules(normalize_answers=False),
    "ours": ScoringRules(),
}
"""Scores to how they come about, each with one step more than the one before."""

DATASET_DEADLINE_S = 300.0
ITEM_DEADLINE_S = 60.0
ANSWER_DEADLINE_S = 20.0
"""CPU time, longer than in training, as nobody waits."""

STOPS = (PoolClosedError, PreloadError)
"""Errors after which no item has a score."""

ITEMS_AT_ONCE = 16
KEPT_DATASETS = 20
KEPT = ("run", "model", "source", "place", "finish_reason", "level")
ORIGIN = ("seed", "params", "dataset", "index")


class _NoItemError(Exception):
    """A completion has no item to be scored with: outcome and reason."""


ANOTHER = ("unmatched", "the installed library makes another question")


def _read(sample: Sample) -> tuple[str | None, str]:
    """Return the answer of a completion, or None and why there is none."""
    text = sample.row.get("completion")
    if not isinstance(text, str):
        return sample.row.get("answer"), sample.outcome
    # The template had begun the thinking: the text alone does not say so.
    is_open = sample.outcome == "unfinished_thinking"
    read = extract_answer(text, thinking_open=is_open)
    return read.answer, str(read.failure)


class Rescoring:
    """Scores samples again in workers.

    Args:
        pool: Its workers are forked with `worker_jobs.PRELOAD`.
    """

    def __init__(self, pool: WorkerPool, library: LibraryDescription) -> None:
        self._pool, self._library = pool, library
        self._places = asyncio.Semaphore(ITEMS_AT_ONCE)
        self._questions = OrderedDict[tuple[str, str], asyncio.Future[Any]]()

    async def rescored(
        self,
        samples: Sequence[Sample],
        take: Callable[[Sequence[Sample]], Awaitable[None]] | None = None,
    ) -> list[Sample]:
        """Score samples again, those of one item at once.

        Args:
            samples: As `Sources` reads them.
            take: Given the new samples of each item, as they come.

        Returns:
            The new samples, in the order of the old ones. `row` says all three scores
            and the saved one.

        Raises:
            PoolError: The pool is closed or cannot start.
        """
        new: dict[int, Sample] = {}

        async def one_item(numbers: Sequence[int]) -> None:
            async with self._places:
                scored = await self._of_item([samples[number] for number in numbers])
                new.update(zip(numbers, scored, strict=True))
                if take is not None:
                    await take(scored)

        def item(number: int) -> str:
            origin = [samples[number].row.get(key) for key in (*ORIGIN, "no_item")]
            return json.dumps([samples[number].item, origin], sort_keys=True)

        items = grouped(range(len(samples)), item).values()
        work = [asyncio.ensure_future(one_item(numbers)) for numbers in items]
        try:
            await asyncio.gather(*work)
        finally:
            for task in work:
                # `gather` leaves the others running when one has failed.
                task.cancel()
        return [new[number] for number in range(len(samples))]

    async def _of_item(self, samples: Sequence[Sample]) -> list[Sample]:
        try:
            entry, params = await self._item(samples[0])
            return await self._scored(samples, entry, params)
        except _NoItemError as error:
            why = error.args
        except ScoringUnavailableError as error:
            if isinstance(error.__cause__, STOPS):
                raise error.__cause__ from None
            why = (UNSCORED, str(error))
        return [self._unscored(sample, *why) for sample in samples]

    async def _scored(
        self,
        samples: Sequence[Sample],
        entry: Mapping[str, Any],
        params: Mapping[str, Any],
    ) -> list[Sample]:
        """Score the samples of one item; raises as `GroupScorer.score_group`."""
        read = await off_loop(lambda: list(map(_read, samples)))
        own = list(dict.fromkeys(answer for answer, _ in read if answer is not None))
        handle = Item(task=samples[0].task, params=params)
        scores: dict[str, dict[str | None, Score]] = {}
        for name, rules in RULES.items():
            scorer = GroupScorer(self._pool, ANSWER_DEADLINE_S, rules)
            given = await scorer.score_group(handle, entry, own) if own else []
            scores[name] = dict(zip(own, given, strict=True))
        new = []
        for sample, (answer, failure) in zip(samples, read, strict=True):
            has_text = answer is not None or sample.row.get("completion") is not None
            if not has_text and sample.score is None:  # the request failed
                new.append(self._unscored(sample, failure, "no text"))
                continue
            none = Score(0.0, failure, None)
            mine = {name: of.get(answer, none) for name, of in scores.items()}
            if any(score.outcome == "timeout" for score in mine.values()):
                why = f"scoring it used up {ANSWER_DEADLINE_S:g} s of CPU time"
                new.append(self._unscored(sample, "timeout", why))
                continue
            ours, values = mine["ours"], {name: of.value for name, of in mine.items()}
            more = {
                "question": entry["question"],
                "gold_answer": entry["answer"],
                "answer": answer,
                "scores": {"saved": sample.score, **values},
                "normalized": ours.normalized,
            }
            new.append(self._new(sample, ours.value, ours.outcome, **more))
        return new

    def _unscored(self, sample: Sample, outcome: str, reason: str) -> Sample:
        return self._new(sample, None, outcome, reason=reason)

    def _new(
        self, sample: Sample, score: float | None, outcome: str, **more: Any
    ) -> Sample:
        task = self._library.tasks.get(sample.task)
        row = {
            "task": sample.task,
            "category": task.category if task else sample.category,
            "question": sample.question,
            "answer": sample.row.get("answer"),
            "saved_answer": sample.row.get("answer"),
            "score": score,
            "outcome": outcome,
            "saved_outcome": sample.outcome,
            "scores": {"saved": sample.score},
            **more,
            **{key: sample.row[key] for key in KEPT + ORIGIN if key in sample.row},
            "reasoning_gym": self._library.release,
        }
        same = {key: row[key] for key in ("category", "question", "score", "outcome")}
        return dataclasses.replace(sample, **same, row=row)

    async def _item(self, sample: Sample) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """Make the item of a sample again; return its entry and its parameters.

        Raises:
            _NoItemError: It is not made, it is another one, or one that is not used.
        """
        task, row = sample.task, sample.row
        if task not in self._library.tasks and task != MIXTURE:
            raise _NoItemError("unmatched", "no such task is installed")
        if "no_item" in row:
            raise _NoItemError("unmatched", row["no_item"])
        params = row.get("params", row.get("dataset", {}))
        try:
            if "seed" in row:
                # As an item that was published.
                job = (worker_jobs.make_entry, task, params, row["seed"], True, True)
                entry = await self._pool.run(*job, deadline_s=ITEM_DEADLINE_S)
                # A user message of another program may have words around the question.
                if entry["question"] not in (sample.question or entry["question"]):
                    raise _NoItemError(*ANOTHER)
            else:
                config = json.dumps(params, sort_keys=True)
                index = await self._index(sample, config)
                call = (worker_jobs.dataset_entry, task, config, index)
                entry = await self._pool.run(*call, deadline_s=DATASET_DEADLINE_S)
        except STOPS:
            raise
        except PoolError as error:
            kind = "not_used" if is_unusable(error) else "unmatched"
            kind = UNSCORED if isinstance(error, WorkerLostError) else kind
            raise _NoItemError(kind, why_no_entry(error)) from error
        return entry, {k: v for k, v in params.items() if k not in ("size", "seed")}

    async def _index(self, sample: Sample, config: str) -> int:
        """Return where a question stands in a dataset.

        One that stands there several times is the one of the sample's own index; there
        is none without, since its entries may differ.

        Raises:
            _NoItemError: It is nowhere.
        """
        key = (sample.task, config)
        if key not in self._questions:
            job = (worker_jobs.dataset_questions, *key)
            made = self._pool.run(*job, deadline_s=DATASET_DEADLINE_S)
            self._questions[key] = asyncio.ensure_future(made)
            if len(self._questions) > KEPT_DATASETS:
                self._questions.popitem(last=False)
        # Other items wait for the same dataset: a cancelled one must not end it.
        questions = await asyncio.shield(self._questions[key])
        places = [i for i, made in enumerate(questions) if made == sample.question]
        own = sample.row.get("index")
        if own not in places and len(places) != 1:
            raise _NoItemError(*ANOTHER)
        return own if own in places else places[0]


@functools.cache
def _one_worker(task_modules: tuple[str, ...]) -> WorkerPool:
    return WorkerPool(1, preload=worker_jobs.preload_of(task_modules))


def rescored_here(
    samples: Sequence[Sample], task_modules: tuple[str, ...] = ()
) -> list[Sample]:
    """Score samples again, with one worker that this process keeps; blocks."""
    pool = _one_worker(task_modules)

    async def rescored() -> list[Sample]:
        return await Rescoring(pool, await read_library(pool)).rescored(samples)

    return asyncio.run(rescored())
