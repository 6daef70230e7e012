"""A user's own tasks: finds the modules that register them, and imports them.

The modules are those in the setting `task_modules`, and those of the classes that this
process registered with reasoning-gym before it started workers. This process imports
neither them nor the library: the process from which workers are forked calls `load`,
which also adds the rules that a module has as `RULES`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import operator
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, cast

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

ClassLocation = tuple[str, str]
"""The name of a module, or the path of its file, and the name of a class in it."""


def resolve_module(module: str) -> str:
    """Return the name of a module unchanged, or the absolute path of a file.

    Raises:
        ValueError: It is neither, or there is no such file.
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


def own_modules(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return modules of a user's own tasks, with absolute paths.

    Example:
        >>> own_modules(["package.own"])
        ('package.own',)

    Raises:
        SettingError: A module is not a name or a file.
    """
    modules = [names] if isinstance(names, str) else names
    try:
        return tuple(map(resolve_module, modules))
    except ValueError as error:
        raise SettingError(f"task_modules: {error}") from error


def registered_here() -> dict[str, list[ClassLocation | None]]:
    """Return the tasks that this process registered, and where their classes are.

    The classes are dataset, config and curriculum.

    Raises:
        SettingError: A worker cannot import one of the classes.
    """
    factory = sys.modules.get(f"{PACKAGE}.factory")
    curricula = getattr(factory, "CURRICULA", {})
    tasks = {}
    for task, registered in dict(getattr(factory, "DATASETS", {})).items():
        classes = [*registered, curricula.get(task)]
        packages = {cls.__module__.partition(".")[0] for cls in classes if cls}
        if task not in {*TASKS, MIXTURE} or packages != {PACKAGE}:
            tasks[task] = [cls and _location(task, cls) for cls in classes]
    return tasks


def _location(task: str, cls: type) -> ClassLocation:
    module: str | None = cls.__module__
    if module == "__main__":  # a worker imports it by its real name, or from its file
        main = sys.modules[module]
        spec = getattr(main, "__spec__", None)
        file = getattr(main, "__file__", None)
        module = spec.name if spec else file and str(Path(file).resolve())
    if not module or "<" in cls.__qualname__:
        raise SettingError(
            f"task {shown(task)}: workers cannot import {cls.__qualname__}; put it at"
            " the top of a module"
        )
    return module, cls.__qualname__


def loading_call(modules: Sequence[str]) -> tuple[str, ...]:
    """Return the `preload` of a pool that loads a user's tasks, () if there are none.

    Raises:
        SettingError: See `registered_here`.
    """
    arguments = (modules, registered_here())
    return (f"{__name__}:load:{json.dumps(arguments)}",) if any(arguments) else ()


def load(arguments: str) -> None:
    """Import modules, register their tasks if they are not yet, and add their rules.

    Args:
        arguments: JSON of the names of modules and of task to the locations of its
            classes.

    Raises:
        SettingError: A module or a class cannot be used.
    """
    modules, registered = json.loads(arguments)
    factory = load_factory()
    try:
        _import_tasks(factory, modules, registered)
    except BaseException as error:  # a module may also exit or raise KeyboardInterrupt
        cause = printable(cause_of(error))
        raise SettingError(f"tasks of your own cannot be loaded: {cause}") from error


def _import_tasks(
    factory: Any, names: list[str], registered: dict[str, list[ClassLocation | None]]
) -> None:
    library = set(factory.DATASETS)
    for task, locations in registered.items():
        classes = [location and _import_class(*location) for location in locations]
        if factory.DATASETS.get(task) != tuple(classes[:2]):
            factory.register_dataset(task, *classes)
    imported = [import_module_or_file(name) for name in names]
    modules = {module.__name__: module for module in imported}
    OWN_TASKS.update(factory.DATASETS.keys() - library)
    if names and not OWN_TASKS:
        call = f"{PACKAGE}.factory.register_dataset"
        raise ValueError(f"{', '.join(modules)}: no task is registered with {call}")
    modules |= {name: sys.modules[name] for name in _class_modules(factory)}
    for name, module in sorted(modules.items()):
        source = Path(module.__file__ or "").read_bytes()
        digest = hashlib.sha256(source).hexdigest()[:12]
        OWN_MODULES[Path(name).name if "/" in name else name] = digest
        _add_rules(module)


def _import_class(module: str, name: str) -> Any:
    return operator.attrgetter(name)(import_module_or_file(module))


def _class_modules(factory: Any) -> Iterator[str]:
    """Yield the names of the user's modules that define classes of their tasks."""
    foreign = {PACKAGE, *sys.stdlib_module_names}
    for task in OWN_TASKS:
        for cls in (*factory.DATASETS[task], factory.CURRICULA.get(task)):
            # A dataset class that `type` made has the module `abc` of its base.
            if cls and cls.__module__.partition(".")[0] not in foreign:
                yield cls.__module__


def import_module_or_file(module: str) -> ModuleType:
    """Import a module by name, or from a file that may import its neighbours."""
    file = Path(module)
    if not file.is_absolute():
        return importlib.import_module(module)
    for loaded in list(sys.modules.values()):
        if getattr(loaded, "__file__", None) == module:
            return loaded
    sys.path.append(str(file.parent))
    # The module is named after its file, or by its path if that name is taken.
    is_taken = file.stem in {*sys.modules, *sys.stdlib_module_names}
    name = module if is_taken else file.stem
    loader = SourceFileLoader(name, module)
    spec = cast(ModuleSpec, importlib.util.spec_from_loader(name, loader))
    new = sys.modules[name] = importlib.util.module_from_spec(spec)
    loader.exec_module(new)
    return new


def _add_rules(module: ModuleType) -> None:
    """Add the rows of a module's `RULES`, one or several, to the table of rules."""
    rows = getattr(module, "RULES", ())
    for row in rows if isinstance(rows, (list, tuple)) else [rows]:
        is_valid = isinstance(row, TaskRules) and row.task in OWN_TASKS
        if not is_valid or TABLE.setdefault(row.task, row) is not row:
            raise ValueError(
                f"RULES of {module.__name__}: expected one TaskRules for each of your"
                f" tasks, found {shown(row)}"
            )
