"""Makes entries by seed, and the scorers of their tasks.

Nothing here protects against the library's code. Generators print, write files and may
hang, so call `make_entry` in a worker process. Datasets that are slow to build are
cached.
"""

from __future__ import annotations

import ast
import contextlib
import decimal
import functools
import inspect
import json
import pickle
import random
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rg_env.errors import SettingError, shown, unknown_name
from rg_env.library.registry import OWN_TASKS, cause_of, load_factory
from rg_env.reward.score import ScoreFunction, as_unit
from rg_env.task_rules.answer_matching import CONTAINMENT_FIX
from rg_env.task_rules.rules import MAX_ANSWER_CHARS, Entry, ScorerFix
from rg_env.task_rules.table import fault_of, rules_of, source_task

MAKING_DEADLINE_S = 20.0  # CPU time for one entry, unless a setting gives it
ANSWER_DEADLINE_S = 5.0  # CPU time for one answer


class UnusableEntryError(RuntimeError):
    """The library made an entry that must not be used; the message says why."""


class OwnTaskError(RuntimeError):
    """A user's task raised an error; the message has the line in their file."""


@contextlib.contextmanager
def own_task_errors() -> Iterator[None]:
    """Turn exceptions of a user's code inside the context into `OwnTaskError`."""
    try:
        yield
    except (MemoryError, UnusableEntryError):
        raise
    except (Exception, SystemExit) as error:
        raise OwnTaskError(cause_of(error)) from error


# Datasets that are built faster are built again for each entry. Of the 510 datasets
# that random levels need, 59 are cached and take about 100 MB.
MIN_CACHED_BUILD_S = 0.001
MAX_CACHED_DATASETS = 100

_cache: dict[tuple[str, str], Any] = {}
"""Task and parameters to dataset, the least recently used one first."""


def build_dataset(
    task: str, params: Mapping[str, Any], seed: int, size: int = 1
) -> Any:
    """Build a dataset of `size` entries; SettingError for an unknown task."""
    factory = load_factory()
    if task not in factory.DATASETS:
        raise unknown_name("task", task, factory.DATASETS, "task")
    return factory.create_dataset(task, seed=seed, size=size, **params)


def cached_dataset(task: str, params: Mapping[str, Any]) -> Any:
    """Return a dataset of these parameters; the caller sets its seed."""
    key = (task, repr(sorted(params.items())))
    dataset = _cache.pop(key, None)
    is_slow = dataset is not None
    if not is_slow:
        began_s = time.process_time()
        dataset = build_dataset(task, params, seed=0)
        is_slow = time.process_time() - began_s >= MIN_CACHED_BUILD_S
    if is_slow:
        _cache[key] = dataset
        if len(_cache) > MAX_CACHED_DATASETS:
            del _cache[next(iter(_cache))]
    # Datasets that share data on their class get the data of their own parameters back.
    name = rules_of(task).kept_on_class
    dataset_cls = type(dataset)
    if hasattr(dataset_cls, name):
        data = vars(dataset).setdefault(name, getattr(dataset_cls, name))
        setattr(dataset_cls, name, data)
    return dataset


# -- entries ---------------------------------------------------------------------------


def _reset_global_state(seed: int) -> None:
    """Reset global state that tasks read or change, so only the seed decides."""
    # list_functions and codeio read the global generator, pool_matrix seeds numpy's,
    # and decimal_arithmetic changes the decimal precision.
    random.seed(seed)
    decimal.setcontext(decimal.Context())
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def _corrected_entry(
    task: str, entry: dict[str, Any], checked: bool, published: bool
) -> dict[str, Any]:
    """Return an entry with corrected metadata, or raise UnusableEntryError."""
    answer = entry["answer"]
    if isinstance(answer, str) and len(answer) > MAX_ANSWER_CHARS:
        raise UnusableEntryError(f"its answer is over {MAX_ANSWER_CHARS} characters")
    source = source_task(task, entry)
    fault = fault_of(source, entry, checked=checked, published=published)
    if fault is not None:
        raise UnusableEntryError(f"its {fault}")
    correct = rules_of(source).corrected_metadata
    if correct is None or not checked:
        return entry
    return {**entry, "metadata": {**entry["metadata"], **correct(entry)}}


def make_entry(
    task: str,
    params: Mapping[str, Any],
    seed: int,
    checked: bool = True,
    published: bool = False,
    index_and_size: tuple[int, int] = (0, 1),
) -> dict[str, Any]:
    """Return the entry of a seed, with corrected metadata.

    It is otherwise that of `create_dataset(task, seed=seed, size=1, **params)[0]`.

    Args:
        task: A registered task.
        params: Dataset parameters that differ from the defaults.
        seed: In [0, 2**32).
        checked: Whether every faulty entry is rejected and metadata is corrected. If
            false, only entries that vary or have no answer are rejected.
        published: Whether the entry is of a published evaluation; see `fault_of`.
        index_and_size: The index of the entry in a dataset of this size; only tasks
            with `is_rebuilt` need it.

    Raises:
        UnusableEntryError: The entry cannot be used.
        OwnTaskError: A user's own task raised an error.
    """
    _reset_global_state(seed)
    if task in OWN_TASKS:
        with own_task_errors():
            # A cached dataset might depend on the seed that it was built with.
            entry = build_dataset(task, params, seed)[0]
            if not isinstance(entry["question"], str):
                raise TypeError(f"question is {shown(entry['question'])}, no text")
            return _corrected_entry(task, entry, checked, published)
    index, size = index_and_size
    if rules_of(task).is_rebuilt:
        dataset = build_dataset(task, params, seed, size)
    else:
        dataset = cached_dataset(task, params)
        dataset.seed = seed
        _reset_global_state(seed)
    return _corrected_entry(task, dataset[index], checked, published)


def usable_entries(
    task: str, params: Mapping[str, Any], seeds: Iterable[int]
) -> Iterator[dict[str, Any]]:
    """Yield the entry of each seed, unless it cannot be used."""
    for seed in seeds:
        with contextlib.suppress(UnusableEntryError):
            yield make_entry(task, params, seed)


@functools.lru_cache(maxsize=1)
def dataset_entries(task: str, config: str) -> list[dict[str, Any] | None]:
    """Return the entries of a dataset, None for each that cannot be made.

    `config` is the JSON of the arguments of `create_dataset`, with `size` and `seed`.
    """
    params = json.loads(config)
    _reset_global_state(params["seed"])
    dataset = load_factory().create_dataset(task, **params)
    entries: list[dict[str, Any] | None] = []
    for index in range(len(dataset)):
        try:
            entries.append(dataset[index])
        except Exception:  # noqa: BLE001 - the library's generators raise anything
            entries.append(None)
    return entries


def dataset_entry(task: str, config: str, index: int) -> dict[str, Any]:
    """Return an entry of `dataset_entries`, or raise UnusableEntryError."""
    entry = dataset_entries(task, config)[index]
    if entry is None:
        raise UnusableEntryError("its item is not made")
    return _corrected_entry(task, entry, checked=True, published=True)


# -- scorers ---------------------------------------------------------------------------


@functools.cache
def _scorer_needs_no_dataset(dataset_cls: Any) -> bool:
    """Return whether a scorer never uses its `self`."""
    source = textwrap.dedent(inspect.getsource(dataset_cls.score_answer))
    function = ast.parse(source).body[0]
    if not isinstance(function, ast.FunctionDef):
        return False
    forbidden = {function.args.args[0].arg, "super"}
    nodes = (node for statement in function.body for node in ast.walk(statement))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names.isdisjoint(forbidden)


def scoring_dataset(task: str, params: Mapping[str, Any]) -> Any:
    """Return a dataset for the scorer of entries that were made with `params`."""
    _reset_global_state(0)
    if task in OWN_TASKS:
        with own_task_errors():
            return cached_dataset(task, params)
    dataset_cls = load_factory().DATASETS[task][0]
    if _scorer_needs_no_dataset(dataset_cls):  # setup takes up to half a second
        return object.__new__(dataset_cls)
    return cached_dataset(task, params)


def has_base_scorer(task: str) -> bool:
    """Return whether a task uses the scorer of the library's base class."""
    factory = load_factory()
    scorer = factory.DATASETS[task][0].score_answer
    return scorer is factory.ProceduralDataset.score_answer


def fix_of(task: str) -> ScorerFix | None:
    """Return the fix of a registered task, None if it has none.

    It is the fix in the rules of the task, or else, for a task with the library's base
    scorer, `CONTAINMENT_FIX`.
    """
    return rules_of(task).fix or (CONTAINMENT_FIX if has_base_scorer(task) else None)


def corrected_scorer(task: str, library_score: ScoreFunction) -> ScoreFunction:
    """Return the scorer of a task with its fix, if it has one."""
    fix = fix_of(task)
    if fix is None:
        return library_score

    def score(answer: str, entry: Entry) -> Any:
        def unit_score(text: str) -> float:
            return as_unit(library_score(text, entry))

        return fix.score(answer, entry, unit_score)

    return score


# One dataset is cached, because it may be large; the calls of one group share it.
@functools.lru_cache(maxsize=1)
def dataset_from_config(class_path: str, config: bytes) -> tuple[str, Any]:
    """Return the task of a registered class, and a dataset of the class.

    Args:
        class_path: The class of the dataset, as "module:class".
        config: Its pickled config.

    Raises:
        SettingError: No task is registered with this class.
    """
    for task, (dataset_cls, _) in load_factory().DATASETS.items():
        if f"{dataset_cls.__module__}:{dataset_cls.__qualname__}" == class_path:
            loaded = pickle.loads(config)  # noqa: S301 - made by the pool's owner
            return task, dataset_cls(loaded)
    class_name = class_path.replace(":", ".")
    raise SettingError(f"dataset_obj: {class_name} is not a registered task")
