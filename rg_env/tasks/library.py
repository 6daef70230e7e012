"""The only access to reasoning-gym: its tasks, and entries made with them.

The rest of the project knows the library only through this module, as plain values. The
module does not protect against the library's code. Generators print, write files and
may hang, so call `make_entry` in a worker process.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import decimal
import functools
import hashlib
import importlib.metadata
import inspect
import json
import random
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rg_env.errors import SettingError, shown, unknown_name
from rg_env.task_rules.rules import MAX_ANSWER_CHARS, MIXTURE
from rg_env.task_rules.table import fault_of, rules_of
from rg_env.tasks import own_tasks
from rg_env.tasks.datasets import CACHE, build_dataset
from rg_env.tasks.library_import import (
    SUBMODULE,
    load_factory,
    not_readable,
    published_system_prompt,
    without_tasks,
)


class UnusableEntryError(RuntimeError):
    """The library made an entry that must not be used; the message says why."""


@dataclasses.dataclass(frozen=True)
class TaskInfo:
    """What the registry says of one task.

    Attributes:
        category: The library's own (its subpackage), e.g. "arithmetic"; of a user's
            own task "own".
        parameters: Dataset parameter to its default as text, without `seed` and
            `size`, which the sampler owns.
        has_curriculum: Whether the library can vary its difficulty.
        asks: What a user's own task asks for: the first line of its dataset's
            docstring.
    """

    name: str
    category: str
    parameters: Mapping[str, str]
    has_curriculum: bool
    asks: str = ""


@dataclasses.dataclass(frozen=True)
class LibraryDescription:
    """What is installed: the tasks by name, the version and where it was found.

    `system_prompt` is that of the published evaluations, "" if it is not there.
    `modules` has the digests of those that a user's own tasks are of, by name.
    """

    tasks: Mapping[str, TaskInfo]
    version: str
    location: str
    from_submodule: bool
    system_prompt: str = ""
    modules: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def own_names(self) -> list[str]:
        """A user's own tasks."""
        own = own_tasks.CATEGORY
        return [name for name, info in self.tasks.items() if info.category == own]

    @property
    def versions(self) -> dict[str, str]:
        """The version of the library, and those of a user's modules."""
        return {"reasoning_gym": self.version, **self.modules}

    @property
    def release(self) -> str:
        """The same in a few words."""
        modules = (f" with {name} {digest}" for name, digest in self.modules.items())
        return self.version + "".join(modules)


def _version(package_dir: Path) -> str:
    """Return the library's version; its own `__version__` lags behind."""
    project = package_dir.parent / "pyproject.toml"
    if project.is_file():
        text = project.read_text(encoding="utf-8")
        # Beside an installed package it may be another project's, left by its wheel.
        is_its_own = re.search(r'^name\s*=\s*"reasoning[-_]gym"', text, re.M)
        found = re.search(r'^version\s*=\s*"([^"]+)"', text, re.M)
        if is_its_own and found:
            return found.group(1)
    return importlib.metadata.version("reasoning-gym")


def default_text(field: dataclasses.Field[Any]) -> str:
    """Return the default of a parameter as text; raises what its factory raises."""
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    if field.default_factory is not dataclasses.MISSING:
        return repr(field.default_factory())
    return "required"


def _task_info(name: str, dataset_cls: type, config_cls: type) -> TaskInfo:
    parts = dataset_cls.__module__.split(".")
    category, asks = parts[1] if len(parts) >= 3 else "other", ""
    if own_tasks.is_own(name):
        category = own_tasks.CATEGORY
        asks = (dataset_cls.__doc__ or "").strip().partition("\n")[0]
    return TaskInfo(
        name=name,
        category=category,
        parameters={
            f.name: default_text(f)
            for f in dataclasses.fields(config_cls)
            if f.name not in ("seed", "size")
        },
        has_curriculum=name in load_factory().CURRICULA,
        asks=asks,
    )


@functools.cache
def describe() -> LibraryDescription:
    """Read the registry: every name but the mixture, sorted; or raise LibraryError."""
    factory = load_factory()
    try:
        package_dir = Path(factory.__file__).resolve().parent
        described = LibraryDescription(
            tasks={
                name: _task_info(name, *classes)
                for name, classes in sorted(factory.DATASETS.items())
                if name != MIXTURE
            },
            version=_version(package_dir),
            location=str(package_dir),
            from_submodule=SUBMODULE.resolve() in package_dir.parents,
            system_prompt=published_system_prompt(),
            modules=own_tasks.DIGESTS,
        )
    except Exception as error:  # the registry of another version may hold anything
        raise not_readable(error) from error
    if not described.tasks:
        raise without_tasks()
    return described


def check_params(task: str, params: Mapping[str, Any], field: str) -> None:
    """Reject dataset parameters that the task does not have or does not accept.

    Raises:
        SettingError: It begins with `field`, the setting that they come from.
    """
    known = describe().tasks[task].parameters
    for name in params:
        if name not in known:
            raise unknown_name(f"{field}.{task}", name, known, "parameter")
    try:
        config = load_factory().DATASETS[task][1](**params)
        if hasattr(config, "validate"):
            config.validate()
    except Exception as error:  # foreign code on a user's values
        reason = str(error).split("\n", 1)[0] or "its own check fails"
        if isinstance(error, TypeError):  # names an operator and not the value
            reason = "a value is not of the type that it takes"
        who = "reasoning-gym"
        if own_tasks.is_own(task):
            who, reason = "it", own_tasks.cause_of(error)
        refusal = f"{who} refuses {shown(dict(params))}: {reason}"
        raise SettingError(refusal, f"{field}.{task}") from error


def _reset_global_state(seed: int) -> None:
    """Put back what tasks read or leave changed, so that an entry is its seed alone.

    list_functions and codeio read the global generator, pool_matrix seeds numpy's,
    and decimal_arithmetic leaves the decimal precision changed.
    """
    random.seed(seed)
    decimal.setcontext(decimal.Context())
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def _usable(
    task: str, entry: dict[str, Any], checked: bool, published: bool
) -> dict[str, Any]:
    """Return an entry as the rules of its task correct it; or UnusableEntryError."""
    answer = entry["answer"]
    if isinstance(answer, str) and len(answer) > MAX_ANSWER_CHARS:
        raise UnusableEntryError(
            f"its answer has more than {MAX_ANSWER_CHARS} characters"
        )
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
    """Make the entry of a task that belongs to a seed.

    Args:
        task: A registered task.
        params: Dataset parameters that differ from the defaults.
        seed: In [0, 2**32).
        checked: Whether faulty entries are rejected, or only those that are another one
            each time or that nobody can answer.
        published: Whether it is an item of a published evaluation; see `fault_of`.
        place: Its index in the dataset and the size, where `is_rebuilt` alone.

    Returns:
        The same as `create_dataset(task, seed=seed, size=1, **params)[0]`; where it is
        checked, with `corrected_metadata` of the task's rules.

    Raises:
        UnusableEntryError: The library made one that cannot be used.
    """
    _reset_global_state(seed)
    if own_tasks.is_own(task):
        return _own_entry(task, params, seed, checked)
    if rules_of(task).is_rebuilt:
        dataset = build_dataset(task, params, seed, size=place[1])
    else:
        dataset = CACHE.dataset(task, params)
        dataset.seed = seed
        _reset_global_state(seed)
    return _usable(task, dataset[place[0]], checked, published)


def _own_entry(
    task: str, params: Mapping[str, Any], seed: int, checked: bool
) -> dict[str, Any]:
    """Make an entry of a user's own task; OwnTaskError for what their code raises."""
    with own_tasks.blaming(UnusableEntryError):
        # Nobody knows what of it depends on the seed.
        entry: dict[str, Any] = build_dataset(task, params, seed)[0]
        try:
            own_tasks.check_entry(entry)
        except UnicodeEncodeError as error:
            reason = "its text has half a character (a surrogate)"
            raise UnusableEntryError(reason) from error
        return _usable(task, entry, checked, published=False)


MOST_ENTRIES = 10_000


@functools.lru_cache(maxsize=1)
def dataset_entries(task: str, config: str) -> list[dict[str, Any] | None]:
    """Return the entries of a whole dataset, None for one that cannot be made.

    `config` is what `create_dataset` takes as JSON, `size` and `seed` among it.
    """
    params = json.loads(config)
    _reset_global_state(params["seed"])
    dataset = load_factory().create_dataset(task, **params)
    if len(dataset) > MOST_ENTRIES:
        raise ValueError(f"a dataset of more than {MOST_ENTRIES} entries")
    entries: list[dict[str, Any] | None] = []
    for index in range(len(dataset)):
        try:
            entries.append(dataset[index])
        except Exception:  # noqa: BLE001 - the library's generators raise anything
            entries.append(None)
    return entries


def dataset_entry(task: str, config: str, index: int) -> dict[str, Any]:
    """Return an entry of `dataset_entries`; UnusableEntryError where it has no use."""
    entry = dataset_entries(task, config)[index]
    if entry is None:
        raise UnusableEntryError("its item is not made")
    return _usable(task, entry, checked=True, published=True)


def usable_entries(
    task: str, params: Mapping[str, Any], seeds: Iterable[int]
) -> Iterator[dict[str, Any]]:
    """Yield the entries of those seeds whose entry can be used."""
    for seed in seeds:
        with contextlib.suppress(UnusableEntryError):
            yield make_entry(task, params, seed)


@functools.cache
def _scorer_needs_no_dataset(dataset_cls: Any) -> bool:
    """Say whether a scorer reads nothing of the dataset that it is a method of."""
    source = textwrap.dedent(inspect.getsource(dataset_cls.score_answer))
    function = ast.parse(source).body[0]
    if not isinstance(function, ast.FunctionDef):
        return False
    own = {function.args.args[0].arg, "super"}
    nodes = (node for part in function.body for node in ast.walk(part))
    return not any(isinstance(node, ast.Name) and node.id in own for node in nodes)


def scoring_dataset(task: str, params: Mapping[str, Any]) -> Any:
    """Return a dataset configured as the one that made the entry, for its scorer.

    That of the many scorers that read answer and entry alone was never set up, which
    would take up to half a second.
    """
    _reset_global_state(0)
    if own_tasks.is_own(task):
        with own_tasks.blaming():
            return CACHE.dataset(task, params)
    dataset_cls = load_factory().DATASETS[task][0]
    if _scorer_needs_no_dataset(dataset_cls):
        return object.__new__(dataset_cls)
    return CACHE.dataset(task, params)


def scorer_digest(task: str) -> str:
    """Return the digest of the source of a task's scorer."""
    return _source_digest(load_factory().DATASETS[task][0].score_answer)


@functools.cache  # no worker can read a user's file
def _source_digest(scorer: Any) -> str:
    return hashlib.sha256(inspect.getsource(scorer).encode()).hexdigest()


def has_base_scorer(task: str) -> bool:
    """Say whether a task's scorer is the one that the library gives to all."""
    factory = load_factory()
    scorer = factory.DATASETS[task][0].score_answer
    return bool(scorer is factory.ProceduralDataset.score_answer)


def dataset_from_config(module: str, class_name: str, config: Any) -> tuple[str, Any]:
    """Return the registered task of a class of the library, and its dataset.

    Raises:
        SettingError: No registered task has that class.
    """
    for task, (dataset_cls, _) in load_factory().DATASETS.items():
        if (dataset_cls.__module__, dataset_cls.__qualname__) == (module, class_name):
            return task, dataset_cls(config)
    raise SettingError(f"dataset_obj: {module}.{class_name} is no registered task")
