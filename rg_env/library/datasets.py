"""Makes entries by seed, and the scorers of their tasks.

Nothing here protects against the library's code. Generators print, write files and may
hang, so call `make_entry` in a worker process. Datasets that are slow to build are
kept.
"""

from __future__ import annotations

import ast
import contextlib
import decimal
import functools
import inspect
import json
import math
import random
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rg_env.errors import SettingError, shown, unknown_name
from rg_env.library.registry import OWN_TASKS, cause_of, load_factory
from rg_env.reward.score import ScoreFunction, as_unit
from rg_env.task_rules.one_rule import CONTAINMENT_FIX
from rg_env.task_rules.rules import MAX_ANSWER_CHARS, MIXTURE, Entry, ScorerFix
from rg_env.task_rules.table import fault_of, rules_of

MAKING_DEADLINE_S = 20.0  # CPU time for one entry, unless a setting gives it
ANSWER_DEADLINE_S = 5.0  # CPU time for one answer


class UnusableEntryError(RuntimeError):
    """The library made an entry that must not be used; the message says why."""


class OwnTaskError(RuntimeError):
    """A user's task raised an error; the message has its place in their file."""


@contextlib.contextmanager
def blaming() -> Iterator[None]:
    """Turn errors of a user's code into `OwnTaskError`."""
    try:
        yield
    except (MemoryError, UnusableEntryError):
        raise
    except (Exception, SystemExit) as error:
        raise OwnTaskError(cause_of(error)) from error


# Datasets that are built faster are built again for each entry. Of the 510 datasets
# that random levels need, 59 are kept and take about 100 MB.
WORTH_KEEPING_S = 0.001
MAX_KEPT_DATASETS = 100

_kept: dict[tuple[str, str], Any] = {}
"""Task and parameters to dataset, the least recently used one first."""


def build_dataset(
    task: str, params: Mapping[str, Any], seed: int, size: int = 1
) -> Any:
    """Build a dataset of `size` entries; SettingError for an unknown task."""
    factory = load_factory()
    if task not in factory.DATASETS:
        raise unknown_name("task", task, factory.DATASETS, "task")
    return factory.create_dataset(task, seed=seed, size=size, **params)


def kept_dataset(task: str, params: Mapping[str, Any]) -> Any:
    """Return a dataset of these parameters; the caller sets its seed."""
    key = (task, repr(sorted(params.items())))
    took_s = WORTH_KEEPING_S
    dataset = _kept.pop(key, None)
    if dataset is None:
        began_s = time.process_time()
        dataset = build_dataset(task, params, seed=0)
        took_s = time.process_time() - began_s
    if took_s >= WORTH_KEEPING_S:
        _kept[key] = dataset
        if len(_kept) > MAX_KEPT_DATASETS:
            del _kept[next(iter(_kept))]
    name = rules_of(task).kept_on_class
    if hasattr(type(dataset), name):
        own = vars(dataset).setdefault(name, getattr(type(dataset), name))
        setattr(type(dataset), name, own)
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


def _usable(
    task: str, entry: dict[str, Any], checked: bool, published: bool
) -> dict[str, Any]:
    """Return an entry with corrected metadata, or raise UnusableEntryError."""
    answer = entry["answer"]
    if isinstance(answer, str) and len(answer) > MAX_ANSWER_CHARS:
        raise UnusableEntryError(f"its answer is over {MAX_ANSWER_CHARS} characters")
    made_by = entry["metadata"]["source_dataset"] if task == MIXTURE else task
    fault = fault_of(made_by, entry, checked=checked, published=published)
    if fault is not None:
        raise UnusableEntryError(f"its {fault}")
    correct = rules_of(made_by).corrected_metadata
    if correct is None or not checked:
        return entry
    return {**entry, "metadata": {**entry["metadata"], **correct(entry)}}


def make_entry(
    task: str,
    params: Mapping[str, Any],
    seed: int,
    checked: bool = True,
    published: bool = False,
    place: tuple[int, int] = (0, 1),
) -> dict[str, Any]:
    """Return the same as `create_dataset(task, seed=seed, size=1, **params)[0]`.

    Args:
        task: A registered task.
        params: Dataset parameters that differ from the defaults.
        seed: In [0, 2**32).
        checked: Whether every faulty entry is rejected and metadata is corrected. If
            not, only entries are rejected that vary or have no answer.
        published: Whether the entry is of a published evaluation; see `fault_of`.
        place: The index in the dataset and its size, only for tasks with `is_rebuilt`.

    Raises:
        UnusableEntryError: The entry cannot be used.
        OwnTaskError: A user's own task raised an error.
    """
    _reset_global_state(seed)
    if task in OWN_TASKS:
        with blaming():
            # A kept dataset might depend on the seed that it was built with.
            entry = build_dataset(task, params, seed)[0]
            if not isinstance(entry["question"], str):
                raise TypeError(f"question is {shown(entry['question'])}, no text")
            return _usable(task, entry, checked, published)
    if rules_of(task).is_rebuilt:
        dataset = build_dataset(task, params, seed, size=place[1])
    else:
        dataset = kept_dataset(task, params)
        dataset.seed = seed
        _reset_global_state(seed)
    return _usable(task, dataset[place[0]], checked, published)


def usable_entries(
    task: str, params: Mapping[str, Any], seeds: Iterable[int]
) -> Iterator[dict[str, Any]]:
    """Yield the entry of each seed, unless it cannot be used."""
    for seed in seeds:
        with contextlib.suppress(UnusableEntryError):
            yield make_entry(task, params, seed)


@functools.lru_cache(maxsize=1)
def dataset_entries(task: str, config: str) -> list[dict[str, Any] | None]:
    """Return the entries of a whole dataset, None for each that cannot be made.

    `config` is JSON of the arguments of `create_dataset`, with `size` and `seed`.
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
    return _usable(task, entry, checked=True, published=True)


# -- scorers ---------------------------------------------------------------------------


@functools.cache
def _scorer_needs_no_dataset(dataset_cls: Any) -> bool:
    """Return whether a scorer never uses its `self`."""
    source = textwrap.dedent(inspect.getsource(dataset_cls.score_answer))
    function = ast.parse(source).body[0]
    if not isinstance(function, ast.FunctionDef):
        return False
    own = {function.args.args[0].arg, "super"}
    nodes = (node for part in function.body for node in ast.walk(part))
    return not any(isinstance(node, ast.Name) and node.id in own for node in nodes)


def scoring_dataset(task: str, params: Mapping[str, Any]) -> Any:
    """Return a dataset with the parameters of the entry's, for its scorer."""
    _reset_global_state(0)
    if task in OWN_TASKS:
        with blaming():
            return kept_dataset(task, params)
    dataset_cls = load_factory().DATASETS[task][0]
    if _scorer_needs_no_dataset(dataset_cls):  # setup takes up to half a second
        return object.__new__(dataset_cls)
    return kept_dataset(task, params)


def checked_scorer(scorer: ScoreFunction) -> ScoreFunction:
    """Return a user's `score_answer` that raises TypeError for an invalid score."""

    def score(answer: str, entry: Entry) -> Any:
        value = scorer(answer, entry)
        number = float(value) if hasattr(value, "__float__") else math.nan
        # A sum of floats may exceed 0 or 1 slightly.
        if not -1e-6 <= number <= 1 + 1e-6:
            raise TypeError(f"returned {shown(value)}; expected a number from 0 to 1")
        return value

    return score


def has_base_scorer(task: str) -> bool:
    """Return whether a task uses the scorer of the library's base class."""
    factory = load_factory()
    scorer = factory.DATASETS[task][0].score_answer
    return bool(scorer is factory.ProceduralDataset.score_answer)


def fix_of(task: str) -> ScorerFix | None:
    """Return the fix of a registered task, None if it has none.

    A task with the library's base scorer has `CONTAINMENT_FIX`, unless its row has a
    fix.
    """
    return rules_of(task).fix or (CONTAINMENT_FIX if has_base_scorer(task) else None)


def corrected_scorer(task: str, library_score: ScoreFunction) -> ScoreFunction:
    """Return the scorer of a task with its fix, if it has one."""
    fix = fix_of(task)
    if fix is None:
        return library_score

    def score(answer: str, entry: Entry) -> Any:
        return fix.score(
            answer, entry, lambda text: as_unit(library_score(text, entry))
        )

    return score


def dataset_from_config(module: str, class_name: str, config: Any) -> tuple[str, Any]:
    """Return the registered task of a class and its dataset, or raise SettingError."""
    for task, (dataset_cls, _) in load_factory().DATASETS.items():
        if (dataset_cls.__module__, dataset_cls.__qualname__) == (module, class_name):
            return task, dataset_cls(config)
    raise SettingError(f"dataset_obj: {module}.{class_name} is no registered task")
