"""A stream of items of selected tasks, for any trainer.

Any position in the stream can be reached without making the items before it.
"""

from __future__ import annotations

import copy
import functools
import inspect
import logging
import os
import statistics
import threading
import typing
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from rg_env.errors import LibraryError, SettingError, not_allowed, unexpected
from rg_env.executor import event_loop_thread
from rg_env.library.installed_library import read_library, shared_pool
from rg_env.library.own_tasks import own_modules
from rg_env.library.registry import TASKS, LibraryDescription
from rg_env.library.task_check import item_fault
from rg_env.reward.extraction import AnswerFormat
from rg_env.reward.score import ScoringRules
from rg_env.stream.adaptive_weights import AdaptiveWeights
from rg_env.stream.completion_scores import Result
from rg_env.stream.curriculum import Count, Feedback, LevelChange
from rg_env.stream.difficulty import LevelSetting, level_setting
from rg_env.stream.draws import Stream, prepare_stream
from rg_env.stream.evaluation_items import (
    evaluation_attempts,
    items_digest,
    load_preset,
)
from rg_env.stream.item import Item, ItemMaker
from rg_env.stream.prefetch import (
    LOOKAHEAD,
    MAX_FAILURES_IN_A_ROW,
    NO_ITEMS,
    NoItemsError,
    PrefetchedItems,
)
from rg_env.stream.seeds import MAX_SEED
from rg_env.stream.task_selection import StreamSettings, TaskChoosing
from rg_env.workers.worker_pool import WorkerPool, default_pool_size, run_blocking

logger = logging.getLogger(__name__)


class _PositionState(msgspec.Struct):
    position: Count


class Tasks:
    """An infinite iterator of items; its arguments correspond to settings.

    No process is started before the first item. The object can be pickled, with its
    position, and used by several threads.

    Args:
        tasks: Names or patterns, such as `*_sorting`; none means all.
        levels: Difficulty: None (the library's default parameters), "random",
            "curriculum", a level in [0, 1] or a range of two; or a mapping of these by
            name or pattern of a task.
        seed: Seed of the stream, in [0, 2**63); the same seed gives the same items.
        weights: Weight of a task, above 0, by task; 1.0 by default.
        params: Dataset parameters of a task, by task.
        categories: Categories whose tasks are used in addition.
        exclude: Names or patterns of tasks to leave out.
        choice: "weighted", "adaptive" (by the reward variance of groups) or "in_turn".
        target_accuracy: Mean score that levels of "curriculum" aim at, in [0, 1].
        shard: Number of this instance, from 0, and number of instances that share the
            stream; no item is in two shards.
        system_prompt: System prompt of the items, or a list from which the seed of an
            item chooses one; None for the built-in one.
        answer_format: How a completion marks its answer: "tags" (`<answer>`) or
            "boxed".
        partial_credit: Whether scores below 1 count; if not, they are 0 for levels too.
        task_modules: Names or paths of modules that register tasks of your own.

    Attributes:
        failures: Number of draws that gave no item and were skipped, by task.
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
        system_prompt: str | Sequence[str] | None = None,
        answer_format: AnswerFormat = "tags",
        partial_credit: bool = True,
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
        if system_prompt in ([], ()):
            raise not_allowed("system_prompt", system_prompt, "at least one prompt")
        self.task_modules = own_modules(task_modules)
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
            task_modules=self.task_modules,
            system_prompt=system_prompt,
            answer_format=answer_format,
            scoring_rules=ScoringRules(partial_credit=partial_credit),
            worker_count=default_pool_size(),
        )
        adaptive = AdaptiveWeights() if choice == "adaptive" else None
        self._feedback = Feedback(target_accuracy, adaptive)
        self._position = 0
        self._maker = ItemMaker()
        self._stream: Stream | None = None  # before the first item
        self._library = LibraryDescription({}, version="", location="")
        self._locks: dict[int, threading.RLock] = {}

    @property
    def _lock(self) -> threading.RLock:
        """The lock of this process; after a fork, the parent's may stay taken."""
        return self._locks.setdefault(os.getpid(), threading.RLock())

    @property
    def failures(self) -> Counter[str]:
        """Number of draws that gave no item and were skipped, by task."""
        return self._maker.failures

    def __repr__(self) -> str:
        return f"<Tasks {self._settings.tasks or 'all'} #{self._position}>"

    # -- items -------------------------------------------------------------------------

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

    def ahead(self, number: int = LOOKAHEAD) -> Generator[Item, None, None]:
        """Yield the items of `next`, for a trainer that should not wait for them.

        All workers but one, which scores, make up to `number` items ahead, or one if
        results decide which come next. If workers are lost, an item is tried again for
        some minutes; otherwise this raises like `next`. Take items in no other way
        meanwhile.

        Example:
            with contextlib.closing(tasks.ahead()) as items:
                item = next(items)
        """
        stream = self._get_stream()
        pool = shared_pool(self.task_modules)
        items = PrefetchedItems(
            stream,
            lambda draw: self._maker.make(pool, draw.task, stream.attempts(draw)),
            lookahead=1 if self.follows_results else number,
        )

        async def next_item() -> Item:
            if items.position != self._position:  # `seek` was called
                items.position = self._position
            return await items.next()

        with event_loop_thread() as wait_for:
            while True:
                try:
                    item = wait_for(next_item())
                finally:
                    self.seek(items.position)
                yield item

    def at(self, position: int) -> Item | None:
        """Return the item of a draw, None if none could be made; raises like `next`.

        Draws are counted from 0. Threads have their items made at the same time.
        """
        stream = self._get_stream()
        draw = stream.draw(position)
        return self._make(draw.task, stream.attempts(draw))

    def _make(self, task: str, attempts: Iterable[Item]) -> Item | None:
        make = functools.partial(self._maker.make, task=task, attempts=attempts)
        return run_blocking(make, shared_pool(self.task_modules))

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
        """Return evaluation items of each task, as `evaluate` has; raises like `next`.

        With a preset, `rg-easy` or `rg-hard`, they are the published items, 50 of each
        task that it has, and the other arguments are not used. Their `digest` is
        logged.
        """
        stream = self._get_stream()
        if preset is None:
            wanted = evaluation_attempts(
                stream, stream.choices, samples_per_task, seed, level
            )
        else:
            wanted = load_preset(preset).items(stream.task_names, stream.build_item)
        names = [attempts[0].task for attempts in wanted]
        with ThreadPoolExecutor() as threads:  # keeps all workers busy
            items = list(filter(None, threads.map(self._make, names, wanted)))
        digest = self.digest(items)
        logger.info("%d evaluation items with digest %s", len(items), digest)
        return items

    def digest(self, items: Iterable[Item]) -> str:
        """Return the digest of evaluation items, as `evaluate` prints it.

        The same digest means the same questions in the same order, scored by the same
        version of the library; prompts and sampling may differ.
        """
        self._get_stream()
        return items_digest(items, self._library.release)

    # -- the stream --------------------------------------------------------------------

    def _get_stream(self) -> Stream:
        with self._lock:
            if self._stream is None:
                try:
                    self._stream = run_blocking(
                        self._prepare, shared_pool(self.task_modules)
                    )
                except SettingError as error:
                    # The argument for `task_params` is called `params`, and so on.
                    field = error.field.removeprefix("task_")
                    if field == "exclude_tasks":
                        field = "exclude"
                    raise SettingError(error.reason, field) from error
            return self._stream

    async def _prepare(self, pool: WorkerPool) -> Stream:
        settings = self._settings
        library = await read_library(pool)
        stream = await prepare_stream(pool, library, settings, self._feedback)
        left_out = self._maker.left_out
        for task in sorted({*stream.task_names}.difference(TASKS)):
            params = settings.task_params.get(task, {})
            if fault := await item_fault(pool, task, params):
                left_out[task] = fault
                logger.warning("task %s is left out: %s", task, fault)
        if left_out.keys() >= set(stream.task_names):
            raise LibraryError(f"no chosen task can be used: {left_out}")
        self._library = library
        return stream

    def categories(self) -> dict[str, str]:
        """Return the category of each chosen task, by task; raises as `next`."""
        names = self._get_stream().task_names
        return {task: self._library.tasks[task].category for task in names}

    @property
    def follows_results(self) -> bool:
        """Whether results change which items come next."""
        return self._settings.follows_results

    # -- results -----------------------------------------------------------------------

    def feedback(
        self, item: Item, results: Sequence[Result | float | None]
    ) -> LevelChange | None:
        """Update the level and the weight of a task from the results of a whole group.

        Args:
            item: An item of this stream, also of another shard or from its JSON.
            results: The results of all its completions; None is ignored.

        Returns:
            The change of the task's level, None if it has not changed.

        Raises:
            ValueError: The item is of another stream, or a result is outside [0, 1].
        """
        try:
            values = [r.value if isinstance(r, Result) else r for r in results]
            scored = [value for value in values if value is not None]
            is_ours = item.seed in self._settings.seeds_at(item.index)
            is_valid = is_ours and all(0 <= value <= 1 for value in scored)
        except (AttributeError, TypeError):
            is_valid = False
        if not is_valid:
            expected = "an item of this stream and its results, in [0, 1] or None"
            raise ValueError(f"feedback: {unexpected((item, results), expected)}")
        if not scored:
            return None
        if self.follows_results:  # otherwise the results are only recorded
            self._get_stream()
        with self._lock:
            return self._feedback.take(
                item.task,
                statistics.fmean(scored),
                item.level,
                has_variance=max(scored) > min(scored),
            )

    def levels(self) -> dict[str, float]:
        """Return the level of each task whose level has followed results."""
        with self._lock:
            return dict(self._feedback.curriculum)

    # -- its state ---------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the stream, levels, weights and results."""
        with self._lock:
            return {"position": self._position, **self._feedback.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; an invalid one raises ValueError, with no change."""
        position = msgspec.convert(state, _PositionState).position
        with self._lock:
            self._feedback.load_state_dict(state)
            self._position = position

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            feedback = copy.deepcopy(self._feedback)
        return vars(self) | {"_feedback": feedback, "_stream": None, "_locks": {}}


def _check_types(arguments: Mapping[str, Any]) -> None:
    """Raise `SettingError` for an argument of `Tasks` that has a wrong type."""
    hints = typing.get_type_hints(Tasks.__init__)
    del hints["levels"], hints["return"]
    for name, hint in hints.items():
        values = arguments[name] if name == "tasks" else [arguments[name]]
        for value in values:
            try:
                msgspec.convert(value, hint)
            except msgspec.ValidationError as error:
                expected = inspect.formatannotation(hint)
                raise not_allowed(name, value, expected) from error
