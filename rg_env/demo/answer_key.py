"""How the simulated policy knows the answers: it draws the items that the env draws.

An item is a pure function of seed, split and index, so whoever draws the same stream
meets the same questions. `AnswerKey` keeps what it has drawn and goes on drawing when
it is asked for a question it has not met, up to a bound.

What it does not do: it cannot follow a curriculum, since levels move with the results.
Of one it has to be told the entries, before they are queried, as the demo does.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from rg_env.demo.policy import KeyEntry
from rg_env.items import worker_jobs
from rg_env.items.entry_maker import is_unusable
from rg_env.items.item_source import ItemSource, NoItemsError
from rg_env.task_rules.table import solution
from rg_env.tasks.difficulty import Difficulty
from rg_env.tasks.evaluation_specs import (
    EvalSpec,
    PresetName,
    evaluation_specs,
    load_preset,
)
from rg_env.tasks.item_stream import ItemStream
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.selection import TaskChoice, TaskChoosing
from rg_env.workers.pool_errors import PoolError
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

MAX_DRAWS = 512
"""For one unknown question; more than the items that the env prepares ahead."""

MAX_AHEAD = 4096
"""Draws beyond the newest that was queried: other questions must not draw so far that
the first are forgotten."""

MAX_KNOWN = 50_000
"""Entries of the stream that are kept."""

MAX_REMEMBERED_MISSES = 10_000
AHEAD = 8
DEADLINE_S = 60.0
"""Longer than an environment waits: what it has queried, the key has to have made."""

UNSOLVED = "no solution known"
"""What the simulated policy says where an entry holds no answer; it is wrong."""


class AnswerKey:
    """A key that draws from a stream as far as the questions need.

    It may be queried for several questions at once; one of them draws at a time.

    Args:
        stream: Entries in the order in which the env samples them, finite or not.
        known: Entries that are known from the beginning and never forgotten.

    Attributes:
        drawn: Entries drawn so far.
        misses: Questions that were not found within the bounds.
    """

    def __init__(
        self,
        stream: AsyncIterator[KeyEntry] | None = None,
        *,
        known: Iterable[KeyEntry] = (),
    ) -> None:
        self._stream = stream
        self._known = {entry.question: entry for entry in known}
        self._met: dict[str, tuple[int, KeyEntry]] = {}
        self._newest_queried = 0
        self._missed: dict[str, None] = {}
        self._lock = asyncio.Lock()
        self.drawn = 0
        self.misses = 0

    def lookup(self, question: str) -> KeyEntry | None:
        """Return the entry of a question that is known or drawn already, or None."""
        met = self._met.get(question)
        if met is None:
            return self._known.get(question)
        self._newest_queried = max(self._newest_queried, met[0])
        return met[1]

    async def find(self, question: str) -> KeyEntry | None:
        """Return the entry of a question, drawing at most MAX_DRAWS entries for it.

        A question that was missed before is looked up but not drawn for again, so that
        a health check cannot pull the stream far ahead of the env.
        """
        known = self.lookup(question)
        if known is not None:
            return known
        async with self._lock:
            known = self.lookup(question)  # another question may have drawn it
            if known is None and question not in self._missed:
                known = await self._draw_until(question)
            if known is None:
                self._remember_miss(question)
            return known

    async def _draw_until(self, question: str) -> KeyEntry | None:
        last = min(self.drawn + MAX_DRAWS, self._newest_queried + MAX_AHEAD)
        while self._stream is not None and self.drawn < last:
            entry = await anext(self._stream, None)
            if entry is None:
                return None
            self.remember(entry)
            if entry.question == question:
                return self.lookup(question)
        return None

    def remember(self, entry: KeyEntry) -> None:
        """Know the next entry of the stream."""
        self.drawn += 1
        self._met[entry.question] = self.drawn, entry
        if len(self._met) > MAX_KNOWN:
            del self._met[next(iter(self._met))]

    def _remember_miss(self, question: str) -> None:
        self.misses += 1
        if self.misses == 1:
            logger.warning(
                "the simulated policy does not know a question and guesses: is the"
                " environment started with the same seed and tasks? (said once)"
            )
        self._missed[question] = None
        if len(self._missed) > MAX_REMEMBERED_MISSES:
            del self._missed[next(iter(self._missed))]


@dataclasses.dataclass(frozen=True)
class Run:
    """The environment's settings that decide its items, called as they are there.

    Attributes:
        library: What is installed.
        choices: The chosen tasks.
        difficulty: The levels; None for the library's defaults.
        samples_per_task: Its `num_eval_samples_per_task`.
    """

    library: LibraryDescription
    choices: Sequence[TaskChoice]
    difficulty: Difficulty | None
    seed: int
    eval_seed: int
    samples_per_task: int
    eval_level: float | None = None
    eval_preset: PresetName | None = None
    task_choice: TaskChoosing = "weighted"

    def build_stream(self) -> ItemStream:
        """Return what the environment draws, from the beginning."""
        in_turn = self.task_choice == "in_turn"
        levels = self.difficulty
        return ItemStream(self.choices, self.seed, difficulty=levels, in_turn=in_turn)

    def key_entry(
        self, task: str, level: float | None, entry: Mapping[str, Any]
    ) -> KeyEntry:
        """See `build_entry`."""
        return build_entry(task, self.library.tasks[task].category, level, entry)


def build_entry(
    task: str, category: str, level: float | None, entry: Mapping[str, Any]
) -> KeyEntry:
    """Return what the policy has to know of an entry of the library."""
    answer = solution(task, entry) or UNSOLVED
    return KeyEntry(task, category, entry["question"], answer, level)


async def sampled_entries(run: Run, source: ItemSource) -> AsyncIterator[KeyEntry]:
    """Yield what an environment samples whose results move no level, without end.

    Its items are made of `run.build_stream()`.
    """
    with contextlib.suppress(NoItemsError):
        while True:
            made = await source.next_item()
            yield run.key_entry(made.handle.task, made.handle.level, made.entry)


def eval_specs(run: Run) -> list[EvalSpec]:
    """Return what the evaluation items of a run are made of."""
    if run.eval_preset is not None:
        tasks = dict.fromkeys(choice.task for choice in run.choices)
        return list(load_preset(run.eval_preset).specs(tasks))
    settings = (run.samples_per_task, run.eval_seed, run.difficulty, run.eval_level)
    return list(evaluation_specs(run.choices, *settings))


async def eval_entry(pool: WorkerPool, run: Run, spec: EvalSpec) -> list[KeyEntry]:
    """Return an evaluation item of a run; none if it cannot be made."""
    for one in (spec, *spec.others):
        how = (dict(one.params), one.seed, True, one.published, one.place)
        call = (worker_jobs.make_entry, spec.task, *how)
        try:
            made = await pool.run(*call, deadline_s=DEADLINE_S)
        except PoolError as error:
            if is_unusable(error):
                continue
            break
        return [run.key_entry(spec.task, spec.level, made)]
    return []
