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
from rg_env.results.samples import SCORES, Sample, grouped, sample_of
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
"""How the scores beside the saved one come about."""

DATASET_DEADLINE_S = 300.0
ITEM_DEADLINE_S = 60.0
# CPU time, longer than in training, as nobody waits.
ANSWER_DEADLINE_S = 20.0

STOPS = (PoolClosedError, PreloadError)
"""Errors after which no item has a score."""

ITEMS_AT_ONCE = 16
ORIGIN = ("seed", "params", "dataset", "index")
KEPT = ("run", "model", "source", "place", "finish_reason", "level", "answer_format")


class _NoItemError(Exception):
    """Outcome and reason of a completion without an item to be scored with."""


def _read(sample: Sample) -> tuple[str | None, str]:
    """Return the answer of a completion, or None and why there is none."""
    text = sample.row.get("completion")
    if not isinstance(text, str):
        return sample.row.get("answer"), sample.outcome
    # The template had begun the thinking: the text alone does not say so.
    is_open = sample.outcome == "unfinished_thinking"
    is_boxed = sample.row.get("answer_format") == "boxed"
    read = extract_answer(
        text,
        thinking_open=is_open,
        answer_format="boxed" if is_boxed else "tags",
    )
    return read.answer, str(read.failure)


def by_item(samples: Iterable[Sample]) -> Iterable[Sequence[Sample]]:
    """Return the samples of each item."""

    def origin(sample: Sample) -> str:
        known = [sample.row.get(key) for key in ORIGIN]
        return json.dumps([sample.item, known], sort_keys=True)

    return grouped(samples, origin).values()


class Rescoring:
    """Makes the items of samples again, and scores them in workers.

    Args:
        pool: Its workers are forked with `worker_jobs.PRELOAD`.
    """

    def __init__(self, pool: WorkerPool, library: LibraryDescription) -> None:
        self._pool = pool
        self._library = library

    async def of_item(self, samples: Sequence[Sample]) -> list[Sample]:
        """Return samples of one item with all three scores and the saved one.

        Raises:
            PoolError: The pool is closed or cannot start.
        """
        try:
            entry, item = await self._item(samples[0])
            return await self._scored(samples, entry, item)
        except _NoItemError as error:
            outcome, why = error.args
        except ScoringUnavailableError as error:
            if isinstance(error.__cause__, STOPS):
                raise error.__cause__ from None
            outcome = UNSCORED
            why = str(error)
        return [self._new(each, None, outcome, {"reason": why}) for each in samples]

    async def _scored(
        self, samples: Sequence[Sample], entry: Mapping[str, Any], item: Item
    ) -> list[Sample]:
        read = await in_thread(lambda: list(map(_read, samples)))
        answers = [answer for answer, _ in read if answer is not None]
        given = [
            await GroupScorer(self._pool, ANSWER_DEADLINE_S, rules).score_group(
                item, entry, answers
            )
            for rules in RULES
        ]
        scores = dict(zip(answers, zip(*given, strict=True), strict=True))
        late = f"scoring it used up {ANSWER_DEADLINE_S:g} s of CPU time"
        new = []
        for sample, (answer, failure) in zip(samples, read, strict=True):
            no_answer = (Score(0.0, failure, None),) * len(RULES)
            mine = no_answer if answer is None else scores[answer]
            ours = mine[-1]
            has_text = answer is not None or sample.row.get("completion") is not None
            if not has_text and sample.score is None:  # the request failed
                new.append(self._new(sample, None, failure, {"reason": "no text"}))
            elif any(score.outcome == "timeout" for score in mine):
                new.append(self._new(sample, None, "timeout", {"reason": late}))
            else:
                values = [sample.score, *(score.value for score in mine)]
                more = {
                    "question": entry["question"],
                    "gold_answer": entry["answer"],
                    "answer": answer,
                    "scores": dict(zip(SCORES, values, strict=True)),
                    "normalized": ours.normalized,
                }
                new.append(self._new(sample, ours.value, ours.outcome, more))
        return new

    def _new(
        self,
        sample: Sample,
        score: float | None,
        outcome: str,
        more: Mapping[str, Any],
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
            **{key: sample.row[key] for key in (*KEPT, *ORIGIN) if key in sample.row},
            "reasoning_gym": self._library.release,
        }
        return sample_of(row)

    async def _item(self, sample: Sample) -> tuple[dict[str, Any], Item]:
        """Make the item of a sample again; return its entry and the item."""
        task = sample.task
        row = sample.row
        if task not in self._library.tasks and task != MIXTURE:
            raise _NoItemError("unmatched", "no such task is installed")
        params = row.get("params", row.get("dataset", {}))
        if "seed" in row:
            # As an item that was published.
            made = self._pool.run(
                worker_jobs.make_entry,
                task,
                params,
                row["seed"],
                True,
                True,
                deadline_s=ITEM_DEADLINE_S,
            )
        elif (index := row.get("index")) is not None:
            made = self._pool.run(
                worker_jobs.dataset_entry,
                task,
                json.dumps(params, sort_keys=True),
                index,
                deadline_s=DATASET_DEADLINE_S,
            )
        else:
            raise _NoItemError("unmatched", "neither a seed nor an index")
        try:
            entry = await made
        except STOPS:
            raise
        except PoolError as error:
            kind = "not_used" if is_unusable(error) else "unmatched"
            kind = UNSCORED if isinstance(error, WorkerLostError) else kind
            raise _NoItemError(kind, why_no_entry(error)) from error
        question = entry["question"]
        is_same = question == sample.question
        if "seed" in row:
            # A user message of another program may have words around the question.
            is_same = question in (sample.question or question)
        if not is_same:
            raise _NoItemError("unmatched", "the library now makes another question")
        params = {k: v for k, v in params.items() if k not in ("size", "seed")}
        return entry, Item(task=task, params=params)


async def rescore(
    parts: Iterable[Sequence[Sample]],
    scored_again: Callable[[Sequence[Sample]], Awaitable[list[Sample]]],
    sinks: Sequence[Part],
    most: int = ITEMS_AT_ONCE,
) -> None:
    """Score samples again, `most` parts of them at once, and hand them to sinks.

    A group of this run has samples as `source_info`, and the new ones as `data`.

    Args:
        parts: Are read in a thread.
        scored_again: Scores the samples of a part.
        sinks: Take each group.
        most: Of parts at once.

    Raises:
        PoolError: The pool is closed or cannot start.
    """
    left = iter(parts)

    async def next_group() -> Group | None:
        part = await in_thread(next, left, None)
        return None if part is None else Group(source_info=part)

    async def complete(group: Group) -> None:
        group.data = await scored_again(group.source_info)

    run = Run(next_group, complete, None, sinks, fatal=(Exception,))
    await Window().run_all(run, most)


async def rescored(pool: WorkerPool, samples: Iterable[Sample]) -> list[Sample]:
    """Return samples scored again, in workers of a pool."""
    rescoring = Rescoring(pool, await read_library(pool))
    groups = await asyncio.gather(*map(rescoring.of_item, by_item(samples)))
    return [sample for group in groups for sample in group]


@functools.cache
def _one_worker(task_modules: tuple[str, ...]) -> WorkerPool:
    return WorkerPool(1, preload=worker_jobs.preload_calls(task_modules))


def rescored_here(
    samples: Sequence[Sample], task_modules: tuple[str, ...] = ()
) -> list[Sample]:
    """Score samples again, with one worker that this process keeps; blocks."""
    return asyncio.run(rescored(_one_worker(task_modules), samples))


# -- the file --------------------------------------------------------------------------

TRIED_AGAIN = frozenset({"timeout", UNSCORED})
"""Outcomes of samples that may have a score the next time, and are not written."""


class RescoredFile(LineFile):
    """The sink of samples that were scored again; each is on disk when it was taken."""

    _done: set[tuple[str, str]]

    def samples(self, version: str) -> Iterator[Sample]:
        """Open it, and yield what it holds, to be read to the end before `missing`.

        Raises:
            SettingError: The file holds something else, or is of another library.
            OSError: The disk refuses it, or another process is writing it.
        """
        self.open()
        self._done = set()
        what = f"{shown(str(self.path))} is not of reasoning-gym {version}"
        other = SettingError(f"--out: {what}; choose another file")
        sources = Sources([self.path])
        for sample in sources.samples():
            if sample.row.get("reasoning_gym") != version:
                raise other
            self._done.add((sample.row["source"], sample.row["place"]))
            yield sample
        if sources.unread and not self._done:
            raise other

    def missing(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Yield the samples that it does not hold."""
        for sample in samples:
            if (sample.row["source"], sample.row["place"]) not in self._done:
                yield sample

    async def take(self, group: Group) -> None:
        """Append the new samples of a group, but those that are tried again."""
        await in_thread(self._write, group.data)

    def _write(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            if sample.score is not None or sample.outcome not in TRIED_AGAIN:
                self.append(encode_for_file(sample.row) + b"\n")
