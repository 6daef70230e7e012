"""A user's own tasks: which modules register them, and their import for workers.

They are the modules that a setting names, and those of the classes that a process has
registered with reasoning-gym before it starts workers. That process imports none of
them, nor the library: it looks at what is imported already, and orders the process that
workers are forked from to `load` them, with the rules that a module holds as `RULES`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import operator
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from rg_env.errors import SettingError, printable, shown, unexpected
from rg_env.library.registry import (
    OWN_MODULES,
    OWN_TASKS,
    PACKAGE,
    TASKS,
    cause_of,
    load_factory,
)
from rg_env.task_rules.rules import MIXTURE, TaskRules
from rg_env.task_rules.table import TABLE

ClassPlace = tuple[str, str]
"""A module, by its name or the path of its file, and the name of a class in it."""

LOAD = f"{__name__}:load:"
"""What a fork server calls, before the order."""


def checked(module: str) -> str:
    """Return the name of a module as it is, the path of a file as a whole one.

    Raises ValueError if it is neither, or there is no such file.
    """
    if module.endswith(".py"):
        path = Path(module).expanduser().resolve()
        if not path.is_file():
            raise ValueError(f"{shown(module)} is not a file")
        return str(path)
    if not all(part.isidentifier() for part in module.split(".")):
        expected = "the name of a module, or the path of a .py file"
        raise ValueError(unexpected(module, expected))
    return module


def registered_here() -> dict[str, list[ClassPlace | None]]:
    """Return the tasks that this process has registered beyond the library's own.

    They come with the places of dataset, config and curriculum; SettingError if a
    worker cannot import one of these.
    """
    factory: Any = sys.modules.get(f"{PACKAGE}.factory")
    tasks = {}
    for task, classes in dict(getattr(factory, "DATASETS", {})).items():
        every = [*classes, factory.CURRICULA.get(task)]
        packages = {cls.__module__.partition(".")[0] for cls in every if cls}
        if task not in {*TASKS, MIXTURE} or packages != {PACKAGE}:
            tasks[task] = [_place(task, cls) if cls else None for cls in every]
    return tasks


def _place(task: str, cls: type) -> ClassPlace:
    module: str | None = cls.__module__
    if module == "__main__":  # a worker imports it by another name, as no program
        main: Any = sys.modules[module]
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        module = spec.name if spec else file and str(Path(file).resolve())
    if not module or "<" in cls.__qualname__:
        raise SettingError(
            f"task {shown(task)}: workers cannot import {cls.__qualname__}; put it at"
            " the top of a module"
        )
    return module, cls.__qualname__


def preloads(named: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what a fork server calls so that its workers know a user's tasks, if any.

    Raises like `registered_here`.
    """
    order = list(named), registered_here()
    return (f"{LOAD}{json.dumps(order)}",) if any(order) else ()


def load(order: str) -> None:
    """Import modules, register what is not registered yet, take over their rules.

    `order` is JSON of the modules and, by task, the places of its classes. Raises
    SettingError if one cannot be used.
    """
    factory = load_factory()
    try:
        _load(factory, *json.loads(order))
    except BaseException as error:  # a module may also exit or raise KeyboardInterrupt
        cause = printable(cause_of(error))
        raise SettingError(f"tasks of your own cannot be loaded: {cause}") from error


def _load(
    factory: Any, named: list[str], registered: dict[str, list[ClassPlace | None]]
) -> None:
    library = set(factory.DATASETS)
    for task, places in registered.items():
        classes: list[Any] = [
            place and operator.attrgetter(place[1])(imported(place[0]))
            for place in places
        ]
        if factory.DATASETS.get(task) != tuple(classes[:2]):
            factory.register_dataset(task, *classes)
    modules = {module.__name__: module for module in map(imported, named)}
    OWN_TASKS.update(factory.DATASETS.keys() - library)
    if named and not OWN_TASKS:
        call = f"{PACKAGE}.factory.register_dataset"
        raise ValueError(f"{', '.join(modules)}: no task is registered with {call}")
    for task in OWN_TASKS:
        for cls in (*factory.DATASETS[task], factory.CURRICULA.get(task)):
            if cls and cls.__module__.partition(".")[0] != PACKAGE:
                modules[cls.__module__] = sys.modules[cls.__module__]
    for name, module in sorted(modules.items()):
        source = Path(module.__file__ or "").read_bytes()
        digest = hashlib.sha256(source).hexdigest()[:12]
        OWN_MODULES[Path(name).name if "/" in name else name] = digest
        _take_rules(module)


def imported(module: str) -> ModuleType:
    """Import a module by name, or from its file, which may import what is beside it."""
    file = Path(module)
    if not file.is_absolute():
        return importlib.import_module(module)
    for known in list(sys.modules.values()):
        if getattr(known, "__file__", None) == module:
            return known
    sys.path.append(str(file.parent))
    # It is known by the file's name, or by its path if there is another of that name.
    is_taken = file.stem in {*sys.modules, *sys.stdlib_module_names}
    name = module if is_taken else file.stem
    spec: Any = importlib.util.spec_from_file_location(name, module)
    loaded = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def _take_rules(module: ModuleType) -> None:
    """Add the rows of a module's `RULES` to the table of rules."""
    given = getattr(module, "RULES", ())
    for row in given if isinstance(given, (list, tuple)) else [given]:
        is_row = isinstance(row, TaskRules) and row.task in OWN_TASKS
        if not is_row or TABLE.setdefault(row.task, row) is not row:
            raise ValueError(
                f"RULES of {module.__name__}: expected one TaskRules for each of your"
                f" tasks, found {shown(row)}"
            )
