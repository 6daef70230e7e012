"""A stream of items of selected tasks, for any trainer.

Any position in the stream can be reached without making the items before it. Unlike a
run, the stream does not remember recent questions: tasks with few repeat them.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import logging
import os
import statistics
import threading
import time
import typing
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec

from rg_env.errors import (
    LibraryError,
    SettingError,
    not_allowed,
    unexpected,
)
from rg_env.library.installed_library import read_library
from rg_env.library.registry import TASKS
from rg_env.library.task_check import item_fault, why_no_entry
from rg_env.reward.extraction import AnswerFormat
from rg_env.stream.curriculum import Count, Feedback, LevelChange, WeightsState
from rg_env.stream.difficulty import LevelSetting, level_setting
from rg_env.stream.evaluation_items import evaluation_specs, load_preset
from rg_env.stream.group_scorer import Result
from rg_env.stream.item import NOT_MADE, Item, first_usable, own_modules, shared_pool
from rg_env.stream.prefetch import (
    LOOKAHEAD,
    MAX_FAILURES_IN_A_ROW,
    NO_ITEMS,
    NoItemsError,
)
from rg_env.stream.sampler import MAX_ATTEMPTS, MAX_SEED, training_seed
from rg_env.stream.selection import StreamSettings, TaskChoosing
from rg_env.stream.stream import Stream, prepare_stream
from rg_env.workers.pool_errors import WorkerLostError
from rg_env.workers.worker_pool import WorkerPool, default_pool_size, run_blocking

logger = logging.getLogger(__name__)

PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0)
"""Before an item whose workers were lost is tried again, where that is waited for."""


_ARGUMENTS = {
    "exclude_tasks": "exclude",
    "task_levels": "levels",
    "task_params": "params",
    "task_weights": "weights",
}
"""Setting to the argument of `Tasks`, where their names differ."""


class _State(msgspec.Struct):
    position: Count
    progress: dict[str, Any]
    curriculum: dict[str, Any]
    adaptive: WeightsState | None = None


class Tasks:
    """An infinite iterator of items; its arguments correspond to settings.

    No process is started before the first item. The object can be pickled together with
    its position, and it can be used by several threads.

    Args:
        tasks: Names or patterns, such as `*_sorting`; none means all.
        levels: How hard: None (the library's default parameters), "random",
            "curriculum", a level in [0, 1] or a range of two; or a mapping of these by
            name or pattern of a task.
        seed: Decides every item, in [0, 2**63).
        weights: Task to weight, above 0; 1.0 where not given.
        params: Task to dataset parameters of the library.
        categories: Categories whose tasks are used in addition.
        exclude: Names or patterns of tasks to leave out.
        choice: "weighted", "adaptive" (by the reward variance of groups) or "in_turn".
        target_accuracy: Mean score that levels of "curriculum" aim at, in [0, 1].
        shard: Number of this instance, from 0, and number of instances that share the
            stream; no item is in two shards.
        system_prompt: System prompt of the items; None for the built-in one.
        answer_format: What marks an answer: "tags" (`<answer>`) or "boxed".
        task_modules: Names or paths of modules that register tasks of your own.

    Attributes:
        failures: Draws that gave no item and were skipped, by task.
        task_modules: The argument with absolute paths; `Item.from_json` needs it.

    Raises:
        SettingError: A level, the seed or the shard is invalid. Names and parameters
            are checked before the first item.
    """

    def __init__(
        self,
        *tasks: str,
        levels: LevelSetting | Mapping[str, LevelSetting] = None,
        seed: int = 0,
        weights: Mapping[str, float] | None = None,
        params: Mapping[str, Mapping[str, Any]] | None = None,
        categories: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        choice: TaskChoosing = "weighted",
        target_accuracy: float = 0.7,
        shard: tuple[int, int] = (0, 1),
        system_prompt: str | None = None,
        answer_format: AnswerFormat = "tags",
        task_modules: str | Sequence[str] = (),
    ) -> None:
        _check_types(locals())
        by_task = dict(levels) if isinstance(levels, Mapping) else {"*": levels}
        for level in by_task.values():
            level_setting(level, "levels")
        index, count = shard
        if not 0 <= index < count:
            raise SettingError(f"(i, n) with 0 <= i < n, found {shard!r}", "shard")
        if not 0 <= seed <= MAX_SEED:
            raise SettingError(f"a number from 0 to {MAX_SEED}, found {seed!r}", "seed")
        self._settings = StreamSettings(
            tasks=list(tasks) or None,
            categories=categories,
            exclude_tasks=list(exclude),
            task_weights=weights or {},
            task_params=params or {},
            task_choice=choice,
            complexity_mode=by_task.pop("*", None),
            task_levels=by_task,
            seed=seed,
            shard_index=index,
            num_shards=count,
            answer_format=answer_format,
        )
        self._target_accuracy = target_accuracy
        self._system_prompt = system_prompt
        self.task_modules = own_modules(task_modules)
        self.failures: Counter[str] = Counter()
        self._set_up(_State(0, {}, {}))

    def _set_up(self, state: _State) -> None:
        self._lock = threading.RLock()
        _open.add(self)
        self._begin(state)

    def _begin(self, state: _State) -> None:
        feedback = Feedback(self._target_accuracy)
        if state.progress:
            feedback.progress.load_state_dict(state.progress)
        if state.curriculum:
            feedback.curriculum.load_state_dict(state.curriculum)
        self._feedback = feedback
        self._position = state.position
        self._adaptive = msgspec.to_builtins(state.adaptive)
        self._stream: Stream | None = None
        self._categories: dict[str, str] = {}
        self._left_out: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<Tasks {self._settings.tasks or 'all'} #{self._position}>"

    def __iter__(self) -> Iterator[Item]:
        """Return itself; a second loop continues where the first one stopped."""
        return self

    def __next__(self) -> Item:
        """Return the next item.

        Raises:
            SettingError: A name or parameter does not exist.
            LibraryError: reasoning-gym cannot be used, or none of the chosen tasks.
            NoItemsError: `MAX_FAILURES_IN_A_ROW` draws gave no item.
            PoolError: Workers were lost; the next call returns the same item.
        """
        with self._lock:
            for _ in range(MAX_FAILURES_IN_A_ROW):
                item = self.at(self._position)
                self._position += 1
                if item is not None:
                    return item
        raise NoItemsError(NO_ITEMS)

    def ahead(self, number: int = LOOKAHEAD) -> Iterator[Item]:
        """Yield the items of `next`, for a trainer that should not wait for them.

        Threads make up to `number` items ahead, each once and with one worker left to
        score, unless results decide which come next. Where workers are lost, an item
        is tried again for some minutes; otherwise this raises like `next`. Nobody else
        may draw.
        """
        threads = ThreadPoolExecutor(max(1, default_pool_size() - 1))
        making: dict[int, Future[Item | None]] = {}
        failures, pauses_s = 0, iter(PAUSES_S)
        try:
            while failures < MAX_FAILURES_IN_A_ROW:
                first = self.position
                wanted = range(first, first + (1 if self.follows_results else number))
                making = {
                    place: making.get(place) or threads.submit(self.at, place)
                    for place in wanted
                }
                try:
                    item = making[first].result()
                except WorkerLostError as error:
                    if (pause_s := next(pauses_s, None)) is None:
                        raise
                    logger.warning("an item is tried again in %g s: %s", pause_s, error)
                    time.sleep(pause_s)
                    making = {
                        at: made for at, made in making.items() if not made.done()
                    }
                    continue
                self.seek(first + 1)
                pauses_s = iter(PAUSES_S)
                failures = failures + 1 if item is None else 0
                if item is not None:
                    yield item
        finally:  # without `shutdown`, which fails while the interpreter ends
            for made in making.values():
                made.cancel()
        raise NoItemsError(NO_ITEMS)

    def at(self, position: int) -> Item | None:
        """Return the item of a draw, None if none could be made; raises like `next`.

        Draws are counted from 0. Threads have their items made at the same time.
        """
        with self._lock:
            stream = self._prepared()
            draw = stream.draw(position)
        return self._make(draw.task, stream.attempts(draw))

    def _make(self, task: str, attempts: Iterable[Item]) -> Item | None:
        if task in self._left_out:
            return None
        make = functools.partial(first_usable, attempts=attempts)
        try:
            item = run_blocking(make, shared_pool(self.task_modules))
        except NOT_MADE as error:
            with self._lock:
                self.failures[task] += 1
                if self.failures[task] == 1:
                    reason = why_no_entry(error)
                    logger.warning("an item of task %s is left out: %s", task, reason)
            return None
        how: Any = {"answer_format": self._settings.answer_format}
        how |= {"system_prompt": self._system_prompt, "task_modules": self.task_modules}
        return dataclasses.replace(item, **how)

    def seek(self, position: int) -> None:
        """Continue at a draw, counted from 0; levels and weights do not change."""
        if position < 0:
            raise ValueError(f"position must be at least 0, found {position!r}")
        with self._lock:
            self._position = position

    @property
    def position(self) -> int:
        """Number of draws so far, including skipped ones."""
        return self._position

    def evaluation(
        self,
        samples_per_task: int = 5,
        seed: int = 123,
        level: float | None = None,
        preset: str | None = None,
    ) -> list[Item]:
        """Return some items of each task as `evaluate` has; raises like `next`.

        With a preset, `rg-easy` or `rg-hard`, they are the published items instead, 50
        of each task that it has, and the other arguments are not used.
        """
        with self._lock:
            stream = self._prepared()
        if preset is None:
            how = (samples_per_task, seed, stream.difficulty, level)
            wanted = evaluation_specs(stream.choices, *how)
        else:
            wanted = load_preset(preset).specs(c.task for c in stream.choices)
        names = [attempts[0].task for attempts in wanted]
        with ThreadPoolExecutor() as threads:  # keeps all workers busy
            return list(filter(None, threads.map(self._make, names, wanted)))

    def _prepared(self) -> Stream:
        if self._stream is None:
            pool = shared_pool(self.task_modules)
            try:
                self._stream = run_blocking(self._prepare, pool)
            except SettingError as error:
                name, dot, rest = error.field.partition(".")
                field = f"{_ARGUMENTS.get(name, name)}{dot}{rest}"
                raise SettingError(error.reason, field) from error
        return self._stream

    async def _prepare(self, pool: WorkerPool) -> Stream:
        library = await read_library(pool)
        stream = await prepare_stream(pool, library, self._settings, self._feedback)
        names, params = stream.task_names, self._settings.task_params
        for task in names:
            if task not in TASKS:
                fault = await item_fault(pool, task, params.get(task, {}))
                if fault is not None:
                    self._left_out[task] = fault
                    logger.warning("task %s is left out: %s", task, fault)
        if self._left_out.keys() >= set(names):
            raise LibraryError(f"no chosen task can be used: {self._left_out}")
        self._categories = {name: library.tasks[name].category for name in names}
        if self._adaptive is not None and self._feedback.adaptive is not None:
            self._feedback.adaptive.load_state_dict(self._adaptive)
        return stream

    def feedback(
        self, item: Item, results: Sequence[Result | float | None]
    ) -> LevelChange | None:
        """Update the level and the weight of a task from the results of a whole group.

        Args:
            item: An item of this stream, also of another shard or from its JSON.
            results: Those of all its completions; None is ignored.

        Returns:
            The change of the task's level, if it has changed.

        Raises:
            ValueError: The item is of another stream, or a result is outside [0, 1].
        """
        try:
            values = [r.value if isinstance(r, Result) else r for r in results]
            scored = [value for value in values if value is not None]
            is_ours = item.seed in self._stream_seeds(item.index)
            is_taken = is_ours and all(0 <= value <= 1 for value in scored)
        except (AttributeError, TypeError):
            is_taken = False
        if not is_taken:
            expected = "an item of this stream and its results, in [0, 1] or None"
            raise ValueError(f"feedback: {unexpected((item, results), expected)}")
        if not scored:
            return None
        group = (item.task, statistics.fmean(scored), item.level)
        with self._lock:
            if self.follows_results:  # else it is only kept
                self._prepared()
            return self._feedback.take(*group, max(scored) > min(scored))

    def _stream_seeds(self, index: int) -> Iterator[int]:
        """Yield the seeds that an item of this stream, in any shard, can have."""
        of_stream = (self._settings.seed, index)
        in_turn = self._settings.task_choice == "in_turn"
        for attempt in range(MAX_ATTEMPTS):
            yield training_seed(*of_stream, attempt, in_turn=in_turn)

    def categories(self) -> dict[str, str]:
        """Return the category of each chosen task, by task; raises as `next`."""
        with self._lock:
            self._prepared()
            return dict(self._categories)

    @property
    def follows_results(self) -> bool:
        """Whether results change which items come next."""
        return self._settings.follows_results

    def levels(self) -> dict[str, float]:
        """Return the levels that follow results, of the tasks that have results."""
        with self._lock:
            return dict(self._feedback.curriculum)

    def state_dict(self) -> dict[str, Any]:
        """Return the place in the stream, levels, weights and results."""
        with self._lock:
            adaptive = self._feedback.adaptive
            return {
                "position": self._position,
                "progress": self._feedback.progress.state_dict(),
                "curriculum": self._feedback.curriculum.state_dict(),
                "adaptive": adaptive.state_dict() if adaptive else self._adaptive,
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; an invalid one raises ValueError, with no change."""
        with self._lock:
            self._begin(msgspec.convert(state, _State))

    def __getstate__(self) -> dict[str, Any]:
        kept = vars(self).keys() - {"_feedback", "_stream", "_lock"}
        return {name: vars(self)[name] for name in kept} | {"state": self.state_dict()}

    def __setstate__(self, mine: dict[str, Any]) -> None:
        state = msgspec.convert(mine.pop("state"), _State)
        vars(self).update(mine)
        self._set_up(state)


def _check_types(given: Mapping[str, Any]) -> None:
    """Raise `SettingError` for an argument of `Tasks` that has another type."""
    hints = typing.get_type_hints(Tasks.__init__)
    for name in (name for name in hints if name not in ("levels", "return")):
        for value in given[name] if name == "tasks" else [given[name]]:
            try:
                msgspec.convert(value, hints[name])
            except msgspec.ValidationError as error:
                expected = inspect.formatannotation(hints[name])
                raise not_allowed(name, value, expected) from error


_open: weakref.WeakSet[Tasks] = weakref.WeakSet()


def _begin_in_child() -> None:
    """Let no child wait for a thread of its parent."""
    for tasks in tuple(_open):
        tasks._lock = threading.RLock()


os.register_at_fork(after_in_child=_begin_in_child)
