"""The environment's own item streams, as entries of the simulated policy's answer key.

Items are a pure function of seed, split and index, so drawing the same stream gives
the same questions. Entries are made in worker processes with the environment's hash
seed, a few ahead of what was asked for.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from rg_env.items import worker_jobs
from rg_env.items.entry_maker import is_unusable
from rg_env.pool.pool_errors import PoolError
from rg_env.pool.worker_pool import WorkerPool
from rg_env.simulation.policy import KeyEntry
from rg_env.tasks.asked_questions import QuestionFilter
from rg_env.tasks.difficulty import Difficulty
from rg_env.tasks.item_stream import ItemSpec, ItemStream, evaluation_specs
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.sampler import MAX_ATTEMPTS, Sampler
from rg_env.tasks.selection import TaskChoice
from rg_env.tasks.solutions import solution

AHEAD = 8
DEADLINE_S = 30.0
UNSOLVED = "no solution known"
"""What the simulated policy says where an entry holds no answer; it is wrong."""


@dataclasses.dataclass(frozen=True)
class Run:
    """The environment's settings that decide its items.

    Attributes:
        library: What is installed.
        choices: The chosen tasks.
        difficulty: The levels; None for the library's defaults.
        seed: The environment's `seed`.
        eval_seed: Its `eval_seed`.
        samples_per_task: Its `num_eval_samples_per_task`.
    """

    library: LibraryDescription
    choices: Sequence[TaskChoice]
    difficulty: Difficulty | None
    seed: int
    eval_seed: int
    samples_per_task: int

    @property
    def every_step(self) -> bool:
        """Whether a draw may be of any step, because results move the levels."""
        difficulty = self.difficulty
        return difficulty is not None and any(
            map(difficulty.follows_results, difficulty.rules)
        )


@dataclasses.dataclass(frozen=True)
class _Wanted:
    """An entry to make: its level, and parameters and a seed for each attempt."""

    task: str
    level: float | None
    attempts: Sequence[tuple[Mapping[str, Any], int]]


Making = tuple[_Wanted, "Future[dict[str, Any]]"]


def _submit(pool: WorkerPool, wanted: _Wanted, attempt: int = 0) -> Making:
    params, seed = wanted.attempts[attempt]
    making = pool.submit(
        worker_jobs.make_entry, wanted.task, dict(params), seed, deadline_s=DEADLINE_S
    )
    return wanted, making


def _asked_entry(
    pool: WorkerPool, making: Making, questions: QuestionFilter | None
) -> dict[str, Any] | None:
    """Return the entry that the environment asks for a draw, None if it skips it."""
    for attempt in range(MAX_ATTEMPTS):
        wanted, future = making
        entry: dict[str, Any] | None = None
        try:
            entry = future.result()
        except PoolError as error:
            if not is_unusable(error):
                return None
        if questions is None:
            return entry
        question = None if entry is None else entry["question"]
        ruling = questions.judge(wanted.task, question, attempt)
        if ruling.action != "retry":
            return entry if ruling.action == "ask" else None
        making = _submit(pool, wanted, attempt + 1)
    return None


def _entries(
    pool: WorkerPool,
    run: Run,
    wanted: Iterator[_Wanted],
    questions: QuestionFilter | None,
) -> Iterator[KeyEntry]:
    """Yield entries in order, made ahead; failed ones are left out."""
    ahead: deque[Making] = deque()
    while True:
        for one in itertools.islice(wanted, AHEAD - len(ahead)):
            ahead.append(_submit(pool, one))
        if not ahead:
            return
        one = ahead[0][0]
        entry = _asked_entry(pool, ahead.popleft(), questions)
        if entry is None:
            continue
        yield KeyEntry(
            task=one.task,
            category=run.library.tasks[one.task].category,
            question=entry["question"],
            answer=solution(one.task, entry) or UNSOLVED,
            level=one.level,
        )


def _at_every_step(
    run: Run, difficulty: Difficulty, spec: ItemSpec
) -> Iterator[tuple[Mapping[str, Any], float]]:
    """Yield parameters and level of each step that a draw may have fallen on."""
    scale = difficulty.scales[spec.task]
    own = run.choices[spec.choice].params
    for number, step in enumerate(scale.steps):
        yield {**step.params, **own}, scale.level_of(number)


def _drawn(run: Run) -> Iterator[_Wanted]:
    """Yield what the environment draws; where levels move, every step of each draw."""
    sampler = Sampler([choice.weight for choice in run.choices], run.seed)
    stream = ItemStream(sampler, run.choices, run.difficulty)
    while True:
        spec = stream.next_spec()
        if run.difficulty is not None and run.difficulty.follows_results(spec.task):
            seed = stream.seed_of(spec)
            for params, level in _at_every_step(run, run.difficulty, spec):
                yield _Wanted(spec.task, level, [(params, seed)])
        else:
            attempts = [
                (stream.params_of(spec, attempt), stream.seed_of(spec, attempt))
                for attempt in range(MAX_ATTEMPTS)
            ]
            yield _Wanted(spec.task, spec.level, attempts)


def train_entries(
    pool: WorkerPool, run: Run, eval_questions: Collection[str]
) -> Iterator[KeyEntry]:
    """Yield the training stream of a run without end."""
    questions = None
    if not run.every_step:
        questions = QuestionFilter()
        questions.keep_for_evaluation(eval_questions)
    return _entries(pool, run, _drawn(run), questions)


def eval_entries(pool: WorkerPool, run: Run) -> Iterator[KeyEntry]:
    """Yield the evaluation items of a run."""
    specs = evaluation_specs(
        run.choices, run.samples_per_task, run.eval_seed, run.difficulty
    )
    wanted = (_Wanted(s.task, s.level, [(s.params, s.seed)]) for s in specs)
    return _entries(pool, run, wanted, None)
