"""Saved completions scored again, with the items that the installed library makes.

Each answer has three scores: of the library's scorer, of the corrected scorer, and of
the corrected scorer with normalization, which is ours. All are behind the guards. A
completion has no score if its item is not made again or not used, or if it had none:

    unmatched        the library makes another question there, or nothing
    not_used         its reference answer is incorrect, or its board cannot be seen
    timeout          scoring used up its CPU time
    unscored         workers were killed or hung, several times
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rg_env.errors import SettingError, shown
from rg_env.executor import in_thread
from rg_env.group_encoding import encode_for_file
from rg_env.library import worker_jobs
from rg_env.library.installed_library import read_library
from rg_env.library.registry import LibraryDescription
from rg_env.library.task_check import is_unusable, why_no_entry
from rg_env.line_file import LineFile
from rg_env.results.samples import SCORES, Sample, grouped, pick, sample_of
from rg_env.results.sources import Sources
from rg_env.reward.extraction import extract_answer
from rg_env.reward.score import UNSCORED, Score, ScoringRules
from rg_env.run.group import Group
from rg_env.run.group_loop import Part, Run, Window
from rg_env.stream.group_scorer import GroupScorer, ScoringUnavailableError
from rg_env.stream.item import Item
from rg_env.task_rules.rules import MIXTURE
from rg_env.workers.call import (
    PoolClosedError,
    PoolError,
    PreloadError,
    WorkerLostError,
)
from rg_env.workers.worker_pool import WorkerPool

RULES = (
    ScoringRules(scorer_fixes=False, normalize_answers=False),
    ScoringRules(normalize_answers=False),
    ScoringRules(),
)
"""The rules of the three scores, in the order of `SCORES` after the saved one."""

DATASET_DEADLINE_S = 300.0
ITEM_DEADLINE_S = 60.0
# CPU time; longer than in training, where a trainer waits.
ANSWER_DEADLINE_S = 20.0

STOPS = (PoolClosedError, PreloadError)
"""Errors after which no item has a score."""

ITEMS_AT_ONCE = 16
ORIGIN = ("seed", "params", "dataset", "index")
"""Fields that make the item again."""

KEPT = (
    "run",
    "model",
    "source",
    "place",
    "finish_reason",
    "level",
    "answer_format",
    *ORIGIN,
)
"""Fields of a sample that its new line has too."""


class _UnmatchedError(Exception):
    """The library does not make the item of a completion."""


def _extract(sample: Sample) -> tuple[str | None, str]:
    """Return the answer of a completion; or None, and the outcome without one."""
    text = sample.row.get("completion")
    if not isinstance(text, str):
        return sample.row.get("answer"), sample.outcome
    extraction = extract_answer(
        text,
        # The prompt had opened the thinking, which the completion does not show.
        thinking_open=sample.outcome == "unfinished_thinking",
        answer_format=(
            "boxed" if sample.row.get("answer_format") == "boxed" else "tags"
        ),
    )
    return extraction.answer, str(extraction.failure)


def group_by_item(samples: Iterable[Sample]) -> Iterable[Sequence[Sample]]:
    """Return the samples of each item."""

    def origin(sample: Sample) -> str:
        fields = [sample.row.get(name) for name in ORIGIN]
        return json.dumps([sample.item, fields], sort_keys=True)

    return grouped(samples, origin).values()


class Rescoring:
    """Makes the items of samples again, and scores their answers in workers.

    Args:
        pool: The workers, which must be forked with `worker_jobs.PRELOAD`.
        library: The installed library.
    """

    def __init__(self, pool: WorkerPool, library: LibraryDescription) -> None:
        self._pool = pool
        self._library = library

    async def score_item(self, samples: Sequence[Sample]) -> list[Sample]:
        """Return the samples of one item with the three scores and the saved one.

        Raises:
            PoolError: The pool is closed or cannot start.
        """
        try:
            entry, item = await self._make_item(samples[0])
            return await self._score(samples, entry, item)
        except _UnmatchedError as error:
            outcome = "unmatched"
            reason = str(error)
        except STOPS:
            raise
        except PoolError as error:  # when the item was made
            outcome = "not_used" if is_unusable(error) else "unmatched"
            if isinstance(error, WorkerLostError):
                outcome = UNSCORED
            reason = why_no_entry(error)
        except ScoringUnavailableError as error:
            if isinstance(error.__cause__, STOPS):
                raise error.__cause__ from None
            outcome = UNSCORED
            reason = str(error)
        return [self._new(s, None, outcome, {"reason": reason}) for s in samples]

    async def _score(
        self, samples: Sequence[Sample], entry: Mapping[str, Any], item: Item
    ) -> list[Sample]:
        extracted = await in_thread(lambda: list(map(_extract, samples)))
        answers = [answer for answer, _ in extracted if answer is not None]
        scores_by_rules = [
            await GroupScorer(self._pool, ANSWER_DEADLINE_S, rules).score_group(
                item, entry, answers
            )
            for rules in RULES
        ]
        scores = dict(zip(answers, zip(*scores_by_rules, strict=True), strict=True))
        late = f"scoring it used up {ANSWER_DEADLINE_S:g} s of CPU time"
        rescored = []
        for sample, (answer, failure) in zip(samples, extracted, strict=True):
            no_answer = (Score(0.0, failure, None),) * len(RULES)
            new_scores = no_answer if answer is None else scores[answer]
            has_text = answer is not None or sample.row.get("completion") is not None
            score = None
            fields: dict[str, Any]
            if not has_text and sample.score is None:  # the request failed
                outcome = failure
                fields = {"reason": "no text"}
            elif any(s.outcome == "timeout" for s in new_scores):
                outcome = "timeout"
                fields = {"reason": late}
            else:
                ours = new_scores[-1]
                score = ours.value
                outcome = ours.outcome
                values = [sample.score, *(s.value for s in new_scores)]
                fields = {
                    "question": entry["question"],
                    "gold_answer": entry["answer"],
                    "answer": answer,
                    "scores": dict(zip(SCORES, values, strict=True)),
                    "normalized": ours.normalized,
                }
            rescored.append(self._new(sample, score, outcome, fields))
        return rescored

    def _new(
        self,
        sample: Sample,
        score: float | None,
        outcome: str,
        fields: Mapping[str, Any],
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
            **fields,
            **pick(sample.row, KEPT),
            "reasoning_gym": self._library.release,
        }
        return sample_of(row)

    async def _make_item(self, sample: Sample) -> tuple[dict[str, Any], Item]:
        """Make the item of a sample again; return its entry and the item."""
        task = sample.task
        row = sample.row
        if task not in self._library.tasks and task != MIXTURE:
            raise _UnmatchedError("no such task is installed")
        params = row.get("params", row.get("dataset", {}))
        index = row.get("index")
        if "seed" in row:
            entry = await self._pool.run(
                worker_jobs.make_entry,
                task,
                params,
                row["seed"],
                True,  # checked
                True,  # by the rules of published items
                deadline_s=ITEM_DEADLINE_S,
            )
        elif index is not None:
            entry = await self._pool.run(
                worker_jobs.dataset_entry,
                task,
                json.dumps(params, sort_keys=True),
                index,
                deadline_s=DATASET_DEADLINE_S,
            )
        else:
            raise _UnmatchedError("neither a seed nor an index")
        question = entry["question"]
        is_same = question == sample.question
        if "seed" in row:
            # The user message of another program may have words around the question.
            is_same = question in (sample.question or question)
        if not is_same:
            raise _UnmatchedError("the library now makes another question")
        params = {k: v for k, v in params.items() if k not in ("size", "seed")}
        return entry, Item(task=task, params=params)


async def rescore(
    batches: Iterable[Sequence[Sample]],
    score: Callable[[Sequence[Sample]], Awaitable[list[Sample]]],
    sinks: Sequence[Part],
    max_in_flight: int = ITEMS_AT_ONCE,
) -> None:
    """Score samples again, several batches at once, and hand them to sinks.

    Args:
        batches: Batches of samples; they are read in a thread.
        score: Returns the samples of a batch with new scores.
        sinks: Each takes groups with the new samples as `data`.
        max_in_flight: Number of batches at once.

    Raises:
        PoolError: The pool is closed or cannot start.
    """
    remaining = iter(batches)

    async def next_group() -> Group | None:
        batch = await in_thread(next, remaining, None)
        return None if batch is None else Group(source_info=batch)

    async def complete(group: Group) -> None:
        group.data = await score(group.source_info)

    run = Run(next_group, complete, None, sinks, fatal=(Exception,))
    await Window().run_all(run, max_in_flight)


async def rescore_samples(pool: WorkerPool, samples: Iterable[Sample]) -> list[Sample]:
    """Return samples with new scores from the workers of a pool."""
    rescoring = Rescoring(pool, await read_library(pool))
    groups = await asyncio.gather(*map(rescoring.score_item, group_by_item(samples)))
    return [sample for group in groups for sample in group]


@functools.cache
def _one_worker(task_modules: tuple[str, ...]) -> WorkerPool:
    return WorkerPool(1, preload=worker_jobs.preload_calls(task_modules))


def rescore_here(
    samples: Sequence[Sample], task_modules: tuple[str, ...] = ()
) -> list[Sample]:
    """Score samples again with one worker, which this process keeps; blocks."""
    return asyncio.run(rescore_samples(_one_worker(task_modules), samples))


# -- the file --------------------------------------------------------------------------

RETRIED = frozenset({"timeout", UNSCORED})
"""Outcomes of samples that are not written, since the next run may score them."""


class RescoredFile(LineFile):
    """The sink of samples with new scores, which are on disk when it has taken them."""

    _written: set[tuple[str, str]]

    def samples(self, version: str) -> Iterator[Sample]:
        """Open the file, and yield its samples; read all before `missing`.

        Raises:
            SettingError: The file holds something else, or is of another library.
            OSError: The file cannot be opened, or another process is writing it.
        """
        self.open()
        self._written = set()
        foreign = SettingError(
            f"--out: {shown(str(self.path))} is not of reasoning-gym {version};"
            " choose another file"
        )
        sources = Sources([self.path])
        for sample in sources.samples():
            if sample.row.get("reasoning_gym") != version:
                raise foreign
            self._written.add(_location(sample))
            yield sample
        if sources.unread and not self._written:
            raise foreign

    def missing(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Yield the samples that the file does not contain."""
        return (s for s in samples if _location(s) not in self._written)

    async def take(self, group: Group) -> None:
        """Append the new samples of a group, except those that are tried again."""
        await in_thread(self._write, group.data)

    def _write(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            if sample.score is not None or sample.outcome not in RETRIED:
                self.append(encode_for_file(sample.row) + b"\n")


def _location(sample: Sample) -> tuple[str, str]:
    return sample.row["source"], sample.row["place"]
