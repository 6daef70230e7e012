"""Built datasets of the library, kept where building takes long."""

from __future__ import annotations

import copy
import operator
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from rg_env.errors import unknown_name
from rg_env.task_rules.table import rules_of
from rg_env.tasks.library_import import load_factory

WORTH_KEEPING_S = 0.001
"""A dataset that was built in less is built anew for each entry: of the 510 that random
levels need all but 59 are, and those are no time at all and no memory."""

MAX_KEPT_DATASETS = 100
"""Built datasets kept in one process. The 59 take about 100 MB; n_queens with 12 queens
takes longest to build, 0.4 s."""


def build_dataset(
    task: str, params: Mapping[str, Any], seed: int, size: int = 1
) -> Any:
    """Build a dataset of `size` entries; SettingError for an unknown task."""
    factory = load_factory()
    if task not in factory.DATASETS:
        raise unknown_name("task", task, factory.DATASETS, "task")
    return factory.create_dataset(task, seed=seed, size=size, **params)


class DatasetCache:
    """Datasets that took long to build; the least recently used one is dropped."""

    def __init__(self, max_datasets: int) -> None:
        self._max_datasets = max_datasets
        self._datasets: OrderedDict[str, Any] = OrderedDict()

    def dataset(self, task: str, params: Mapping[str, Any]) -> Any:
        """Return a dataset of these parameters, whose seed the caller sets."""
        key = f"{task}/{sorted(params.items())!r}"
        dataset = self._datasets.get(key)
        if dataset is None:
            dataset = self._built(key, task, params)
        else:
            self._datasets.move_to_end(key)
        name = rules_of(task).kept_on_class
        if hasattr(type(dataset), name):
            own = vars(dataset).setdefault(name, getattr(type(dataset), name))
            setattr(type(dataset), name, own)
        return dataset

    def _built(self, key: str, task: str, params: Mapping[str, Any]) -> Any:
        dataset = self._sharing(task, params)
        if dataset is None:
            began_s = time.process_time()
            dataset = build_dataset(task, params, seed=0)
            if time.process_time() - began_s < WORTH_KEEPING_S:
                return dataset
        self._datasets[key] = dataset
        if len(self._datasets) > self._max_datasets:
            self._datasets.popitem(last=False)
        return dataset

    def _sharing(self, task: str, params: Mapping[str, Any]) -> Any:
        """Return a dataset that shares the data of a kept one, None if none can."""
        reads = rules_of(task).setup_reads
        if not reads:
            return None
        config = load_factory().DATASETS[task][1](seed=0, size=1, **params)
        config.validate()
        read = operator.attrgetter(*reads)
        for key, kept in self._datasets.items():
            if key.startswith(f"{task}/") and read(kept.config) == read(config):
                dataset = copy.copy(kept)
                dataset.config = config
                return dataset
        return None


CACHE = DatasetCache(MAX_KEPT_DATASETS)
