"""Saved completions scored again, with the items that the installed library makes.

Each answer has three scores: of the library alone, with the fixes of its scorers, and
with normalization as well, which is ours. All three are behind the guards. A completion
whose item is not made again, or not used, has none:

    unmatched        the library makes another question there, or nothing
    unusable_item    its reference answer is incorrect, or its board cannot be seen
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rg_env.evaluation.samples import Sample
from rg_env.items import worker_jobs
from rg_env.items.entry_maker import is_unusable
from rg_env.items.group_scorer import GroupScorer, TaskHandle
from rg_env.items.installed_library import read_library
from rg_env.off_loop import off_loop
from rg_env.scoring.extraction import extract_answer
from rg_env.scoring.score import Score
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.tasks.library import MIXTURE, LibraryDescription
from rg_env.workers.pool_errors import PoolClosed, PoolError, PreloadFailed
from rg_env.workers.worker_pool import WorkerPool

RULES = {
    "library": ScoringRules(scorer_fixes=False, normalize_answers=False),
    "fixes": ScoringRules(normalize_answers=False),
    "ours": ScoringRules(),
}
"""Scores to how they come about, each with one step more than the one before."""

CAUSES = ("version", "guard", "extraction", "fix", "normalization")
"""Why a score is not the saved one: another library (or other rules, where the saved
score is one of ours), then the steps of ours."""

DATASET_DEADLINE_S = 300.0
ITEM_DEADLINE_S = 60.0
ANSWER_DEADLINE_S = 20.0
"""Longer than in training, as nobody waits: a busy machine times no answer out."""
ITEMS_AT_ONCE = 16
KEPT_DATASETS = 20
LEAST_CHANGE = 1e-6
ORIGIN: tuple[str, ...]
ORIGIN = ("run", "model", "source", "place", "seed", "level", "params", "dataset")
ORIGIN += ("index", "finish_reason")


ANOTHER = ("unmatched", "the installed library makes another question")


class _NoItem(Exception):
    """A saved completion has no item to be scored with; the outcome and the reason."""


@dataclasses.dataclass(frozen=True)
class _Answered:
    """A sample with the answer of its text, or why there is none."""

    sample: Sample
    answer: str | None
    failure: str


def _read(sample: Sample) -> _Answered:
    """Extract the answer of a completion; where there is no text it is as saved."""
    text, saved = sample.row.get("completion"), sample.row.get("answer")
    if not isinstance(text, str):
        return _Answered(sample, saved, sample.outcome)
    # The template had begun the thinking: the text alone does not say so.
    is_open = sample.outcome == "unfinished_thinking"
    found = extract_answer(text, thinking_open=is_open)
    return _Answered(sample, found.answer, str(found.failure))


class Rescoring:
    """Scores samples again in workers.

    Args:
        pool: Its workers are forked with `worker_jobs.PRELOAD`.
        library: What is installed.
        deadline_s: Seconds that scoring one answer may take.
    """

    def __init__(
        self,
        pool: WorkerPool,
        library: LibraryDescription,
        deadline_s: float = ANSWER_DEADLINE_S,
    ) -> None:
        self._pool = pool
        self._library = library
        self._scorers = {
            name: GroupScorer(pool, deadline_s, rules) for name, rules in RULES.items()
        }
        self._places = asyncio.Semaphore(ITEMS_AT_ONCE)
        self._questions: OrderedDict[str, asyncio.Future[Any]] = OrderedDict()

    async def rescored(
        self,
        samples: Sequence[Sample],
        take: Callable[[Sequence[Sample]], Any] | None = None,
    ) -> list[Sample]:
        """Score samples again, those of one item at once.

        Args:
            samples: As `Sources` reads them.
            take: Awaited with the new samples of each item, as they come.

        Returns:
            The new samples, in the order of the old ones. `row` says all three scores,
            the saved one and what changed it.

        Raises:
            PoolError: The pool is closed or cannot start.
            ScoringUnavailable: The same while answers were scored.
        """
        items: dict[str, list[int]] = {}
        for number, sample in enumerate(samples):
            row = sample.row
            origin = {key: row.get(key) for key in ("seed", "params", "dataset")}
            named = [sample.task, sample.question, row.get("index"), origin]
            key = json.dumps(named, sort_keys=True)
            items.setdefault(key, []).append(number)
        found: list[Sample | None] = [None] * len(samples)

        async def one_item(numbers: Sequence[int]) -> None:
            async with self._places:
                old = [samples[number] for number in numbers]
                new = await self._item_rescored(old)
                for number, sample in zip(numbers, new, strict=True):
                    found[number] = sample
                if take is not None:
                    await take(new)

        work = [asyncio.ensure_future(one_item(numbers)) for numbers in items.values()]
        try:
            await asyncio.gather(*work)
        finally:
            for task in work:
                task.cancel()
        return [sample for sample in found if sample is not None]

    async def _item_rescored(self, samples: Sequence[Sample]) -> list[Sample]:
        try:
            entry, params = await self._item(samples[0])
        except _NoItem as error:
            outcome, reason = error.args
            return [self._new(s, None, outcome, {"reason": reason}) for s in samples]
        read = await off_loop(lambda: [_read(sample) for sample in samples])
        saved = {s.row["answer"] for s in samples if s.row.get("answer") is not None}
        own = list(dict.fromkeys(r.answer for r in read if r.answer is not None))
        handle = TaskHandle(task=samples[0].task, params=params)
        scores: dict[str, dict[str, Score]] = {}
        for name, scorer in self._scorers.items():
            answers = [*own, *sorted(saved - {*own})] if name == "library" else own
            found = await scorer.score_group(handle, entry, answers) if answers else ()
            scores[name] = dict(zip(answers, found, strict=True))
        return [self._scored(one, entry, scores) for one in read]

    def _scored(
        self,
        read: _Answered,
        entry: Mapping[str, Any],
        scores: Mapping[str, Mapping[str, Score]],
    ) -> Sample:
        missing = Score(0.0, read.failure, None)
        mine = {
            name: missing if read.answer is None else by_answer[read.answer]
            for name, by_answer in scores.items()
        }
        ours, row = mine["ours"], read.sample.row
        of_saved = scores["library"].get(row.get("answer") or "", missing)
        values = {name: score.value for name, score in mine.items()}
        more = {
            "question": entry["question"],
            "gold_answer": entry["answer"],
            "answer": read.answer,
            "saved_answer": row.get("answer"),
            "scores": {"saved": read.sample.score, **values},
            "changes": _causes(read.sample, read.answer, of_saved, mine),
            "normalized": ours.normalized,
        }
        return self._new(read.sample, ours.value, ours.outcome, more)

    def _new(
        self, sample: Sample, score: float | None, outcome: str, more: Mapping[str, Any]
    ) -> Sample:
        task = self._library.tasks.get(sample.task)
        category = task.category if task else sample.category
        row = {
            "task": sample.task,
            "category": category,
            "question": sample.question,
            "answer": sample.row.get("answer"),
            "score": score,
            "outcome": outcome,
            "saved_outcome": sample.outcome,
            "scores": {"saved": sample.score},
            "changes": [],
            **more,
            **{key: sample.row[key] for key in ORIGIN if key in sample.row},
            "reasoning_gym": self._library.version,
        }
        return dataclasses.replace(
            sample,
            category=category,
            question=row["question"],
            score=score,
            outcome=outcome,
            row=row,
        )

    async def _item(self, sample: Sample) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """Make the item of a sample again; return its entry and its parameters.

        Raises:
            _NoItem: It is not made, it is another one, or one that is not used.
        """
        row, task = sample.row, sample.task
        if task not in self._library.tasks and task != MIXTURE:
            raise _NoItem("unmatched", "no such task is installed")
        try:
            if "seed" in row:
                entry = await self._pool.run(
                    worker_jobs.make_entry,
                    *(task, row["params"], row["seed"]),
                    deadline_s=ITEM_DEADLINE_S,
                )
                is_same = entry["question"] in (sample.question or entry["question"])
                params = row["params"]
            else:
                config = row.get("dataset", {})
                index = await self._index(task, config, row.get("index"), sample)
                params = {k: v for k, v in config.items() if k not in ("size", "seed")}
                is_same = True
                entry = await self._pool.run(
                    worker_jobs.dataset_entry,
                    *(task, config, index),
                    deadline_s=DATASET_DEADLINE_S,
                )
        except (PoolClosed, PreloadFailed):
            raise
        except PoolError as error:
            kind = "unusable_item" if is_unusable(error) else "unmatched"
            reason = getattr(error, "message", str(error)).partition("\n")[0]
            raise _NoItem(kind, reason.removeprefix(f"{task}: ")) from error
        if not is_same:
            raise _NoItem(*ANOTHER)
        return entry, params

    async def _index(
        self, task: str, config: Mapping[str, Any], index: int | None, sample: Sample
    ) -> int:
        """Return where a question stands in a dataset.

        One that stands there several times is the one of the sample's own index; there
        is none without, since its entries may differ.

        Raises:
            _NoItem: It is nowhere.
        """
        key = json.dumps([task, config], sort_keys=True)
        if key not in self._questions:
            self._questions[key] = asyncio.ensure_future(
                self._pool.run(
                    worker_jobs.dataset_questions,
                    *(task, config),
                    deadline_s=DATASET_DEADLINE_S,
                )
            )
            if len(self._questions) > KEPT_DATASETS:
                self._questions.popitem(last=False)
        questions = await asyncio.shield(self._questions[key])
        places = [i for i, asked in enumerate(questions) if asked == sample.question]
        if index is not None and index in places:
            return index
        if len(places) != 1:
            raise _NoItem(*ANOTHER)
        return places[0]


def _causes(
    sample: Sample, answer: str | None, of_saved: Score, mine: Mapping[str, Score]
) -> list[str]:
    """Return the causes for which a score is not the saved one, () if it is."""
    saved, ours = sample.score, mine["ours"]
    if saved is None or abs(ours.value - saved) < LEAST_CHANGE:
        return []
    answered = sample.row.get("answer")
    if "seed" in sample.row:  # its score was one of ours already
        if answer != answered:
            return ["extraction"]
        return ["guard" if ours.outcome == "rejected" else "version"]
    is_rejected = of_saved.outcome == "rejected"
    steps = [
        ("guard" if is_rejected else "version", of_saved.value),
        ("extraction", mine["library"].value),
        ("fix", mine["fixes"].value),
        ("normalization", ours.value),
    ]
    if answered is None:  # nothing says what was scored
        del steps[0]
    found, before = [], saved
    for cause, value in steps:
        if abs(value - before) >= LEAST_CHANGE:
            found.append(cause)
        before = value
    return found


async def rescored(pool: WorkerPool, samples: Sequence[Sample]) -> list[Sample]:
    """Score samples again, those of one task for example; see `Rescoring.rescored`."""
    return await Rescoring(pool, await read_library(pool)).rescored(samples)
