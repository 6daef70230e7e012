"""Names of the original that its callers use, each a view of the present state.

They stand together here, so that no other module depends on them. Helpers that need no
run also work before `setup`, and on an object made only by `ReasoningGymEnv.__new__`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, MutableMapping, Sequence
from operator import attrgetter
from typing import Any

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.atropos.hooks import override_of
from rg_env.atropos.rewards import scorer_of
from rg_env.errors import LibraryError, SettingError
from rg_env.library import registry
from rg_env.library.own_tasks import registered_here
from rg_env.library.registry import TASKS as FALLBACK_TASKS
from rg_env.reward.extraction import extract_answer
from rg_env.run.dumps import Dumps
from rg_env.stream.curriculum import Feedback
from rg_env.stream.prefetch import RunItems
from rg_env.stream.seeds import draw_generator
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

UNCALLED = (
    "_adjust_task_complexity",
    "_create_dataset_with_complexity",
    "_get_complexity_params_for_task",
    "_get_task_complexity_level",
    "_initialize_complexity_mapping",
    "_save_failed_group_for_debugging",
    "_save_failed_rollouts_to_jsonl",
    "_save_rollouts_to_jsonl",
    "_update_task_performance",
    "_validate_discovered_tasks",
)
"""Methods that the original calls and this environment does not."""


def view(path: str) -> Any:
    """Return a property that reads and sets the attribute at a path, such as `a.b`."""
    owner, _, name = path.rpartition(".")
    get = attrgetter(path)
    get_owner = attrgetter(owner)
    return property(get, lambda self, value: setattr(get_owner(self), name, value))


class OldNames:
    """The names of the original, as views of the objects of a run."""

    logger = logging.getLogger("rg_env.env")  # for subclasses

    config: ReasoningGymEnvConfig
    _dumps: Dumps
    _feedback: Feedback
    _items: RunItems | None = None
    _test_items: list[tuple[Mapping[str, Any], Any]]
    _lists_test_items = False
    _pool: WorkerPool | None = None

    # The groups of the dump files being written, and the numbers of groups and files.
    rollouts_to_save_buffer = view("_dumps.saved.buffer")
    failed_rollouts_to_save_buffer = view("_dumps.failed.buffer")
    processed_item_count = view("_dumps.saved.groups_total")
    failed_processed_item_count = view("_dumps.failed.groups_total")
    save_file_batch_num = view("_dumps.saved.batch_num")
    failed_save_file_batch_num = view("_dumps.failed.batch_num")
    datadumps_dir = view("_dumps.folder")
    run_uuid = view("_dumps.run_uuid")

    # Whether each rollout since the last log to W&B is correct: 1.0 or 0.0.
    percent_correct_buffer = view("metrics.correct_since_log")
    # The newest mean scores of each task, oldest first; the number of its groups.
    task_performance_history = view("_feedback.progress.history")
    task_group_counts = view("_feedback.progress.group_counts")

    def _prepared_items(self) -> RunItems:
        if self._items is None:
            raise RuntimeError("this needs setup() first")
        return self._items

    @property
    def task_names(self) -> list[str]:
        """A copy of the chosen tasks, sorted; empty before `setup`."""
        return [] if self._items is None else list(self._items.stream.task_names)

    @task_names.setter
    def task_names(self, names: Sequence[str]) -> None:
        if self._items is not None:
            raise AttributeError("the tasks are chosen at setup(); set env.tasks")
        self.config.tasks = list(names) or self.config.tasks

    @property
    def test_items_with_scorers(self) -> list[tuple[Mapping[str, Any], Any]]:
        """The evaluation items, as (entry, dataset).

        The first read after `setup` waits until they are made.
        """
        if self._items is not None and not self._lists_test_items:
            items = self._items.evaluation.wait_for_items()
            self._test_items += [(item.entry, item) for item in items]
            self._lists_test_items = True
        return self._test_items

    @test_items_with_scorers.setter
    def test_items_with_scorers(self, items: list[Any]) -> None:
        self._test_items = items
        self._lists_test_items = self._items is not None
        if self._items is not None:
            self._items.evaluation.drop()

    @property
    def iter(self) -> int:
        """The number of draws so far, at which the stream continues."""
        return 0 if self._items is None else self._items.position

    @iter.setter
    def iter(self, position: int) -> None:
        if position or self._items is not None:  # before `setup`, it is 0
            self._prepared_items().position = position

    @property
    def rng(self) -> random.Random:
        """A copy of the generator that decides the next draw."""
        config = self.config
        index = self.iter * config.num_shards + config.shard_index
        return draw_generator(config.seed, index)

    @rng.setter
    def rng(self, generator: random.Random) -> None:
        if self._items is not None:
            raise AttributeError("the seed decides the items; set env.seed before")

    @property
    def task_complexity_levels(self) -> MutableMapping[str, float]:
        """The level of each task, in [0, 1]; setting an item moves the task there."""
        return self._feedback.curriculum

    @task_complexity_levels.setter
    def task_complexity_levels(self, levels: Mapping[str, float]) -> None:
        new = dict(levels)
        current = self._feedback.curriculum
        current.clear()
        current.update(new)

    # -- helpers -----------------------------------------------------------------------

    async def _save_rollouts_to_jsonl(self) -> None:
        """Complete the dump file that is being written."""
        await self._dumps.finish(self._dumps.saved)

    async def _save_failed_rollouts_to_jsonl(self) -> None:
        """Complete the dump file of failed groups that is being written."""
        await self._dumps.finish(self._dumps.failed)

    def _get_task_names(self) -> list[str]:
        """Return every task of the registry, or of the fallback list, sorted."""
        try:
            tasks = set(registry.describe().tasks)
        except LibraryError as error:
            logger.error("%s; these tasks ought to be there", error)
            tasks = set(FALLBACK_TASKS)
        return sorted(tasks | {*registered_here()})

    def _validate_discovered_tasks(
        self, task_names_to_validate: Sequence[str], rg_package_or_none: Any
    ) -> list[str]:
        """Return the names of the datasets that the package, if any, can build."""
        valid = []
        seed = self._settings.seed
        for name in () if rg_package_or_none is None else task_names_to_validate:
            try:
                rg_package_or_none.create_dataset(name, size=1, seed=seed)[0]
                valid.append(name)
            except Exception as error:  # noqa: BLE001 - foreign code raises anything
                logger.warning("task %s is left out: %r", name, error)
        return valid

    def _extract_final_answer(self, text: str) -> str | None:
        """Return the final answer of a completion, or None."""
        answer_format = self._settings.answer_format
        return extract_answer(text, answer_format=answer_format).answer

    def _score_answer_with_both_formats(
        self, model_answer: str | None, rg_item: Mapping[str, Any], dataset_obj: Any
    ) -> float:
        """Score an answer, bare and tagged; blocks until a worker has done so."""
        if model_answer is None:
            return 0.0
        scorer = scorer_of(self._settings, self._pool)
        return scorer.score_blocking(dataset_obj, rg_item, model_answer.strip()).value

    # -- helpers that a subclass or an instance may override ---------------------------

    def _helper(self, name: str) -> Any:
        """Return a helper that is overridden; None if it is ours, or there is none."""
        return override_of(self, name, OldNames)

    def _refuse_uncalled(self) -> None:
        """Refuse helpers that the original calls and this environment does not."""
        for name in UNCALLED:
            if self._helper(name) is not None:
                helper = f"{type(self).__name__}.{name}"
                raise SettingError(f"{helper} is never called (docs/differences.md)")

    def _choose_tasks_by_helper(self) -> None:
        """Choose the tasks that an overridden `_get_task_names` returns, if any."""
        helper = self._helper("_get_task_names")
        if helper is None:
            return
        name = f"{type(self).__name__}._get_task_names"
        if self.config.tasks is not None:
            raise SettingError(f"{name} chooses the tasks", "env.tasks")
        tasks = list(helper())
        if not tasks:
            raise SettingError(f"{name} names no task")
        self.config.tasks = tasks

    @property
    def _settings(self) -> ReasoningGymEnvConfig:
        """The settings; the defaults on an object that only `__new__` has made."""
        config = vars(self).get("config")
        if isinstance(config, ReasoningGymEnvConfig):
            return config
        return ReasoningGymEnvConfig.model_validate({})
