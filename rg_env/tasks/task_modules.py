"""The modules that register tasks of a user's own: which they are, and their import.

They are the modules that a setting names, and those of the classes that a process has
registered with reasoning-gym before it starts workers. That process imports none of
them, nor the library: it looks at what is imported already, and orders the process that
workers are forked from to `load` them, with the rules that a module holds as `RULES`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import importlib.util
import json
import operator
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from rg_env.errors import SettingError, printable, shown, unexpected
from rg_env.task_rules import table
from rg_env.task_rules.rules import MIXTURE, TaskRules
from rg_env.tasks import own_tasks
from rg_env.tasks.library import default_text
from rg_env.tasks.library_import import PACKAGE, TASKS, load_factory

ClassPlace = tuple[str, str]
"""A module, by its name or the path of its file, and the name of a class in it."""

KNOWN = {*TASKS, MIXTURE}
LOAD = f"{__name__}:load:"
"""What a fork server calls, before the order."""


# -- in the process that has the workers ----------------------------------------------


def checked(module: str) -> str:
    """Return the name of a module as it is, the path of a file as a whole one.

    Raises:
        ValueError: It is neither, or there is no such file.
    """
    if module.endswith(".py"):
        try:
            return str(Path(module).expanduser().resolve(strict=True))
        except (OSError, RuntimeError) as error:
            raise ValueError(f"{shown(module)} is not a file") from error
    if not all(part.isidentifier() for part in module.split(".")):
        expected = "the name of a module, or the path of a .py file"
        raise ValueError(unexpected(module, expected))
    return module


def registered_here() -> dict[str, list[ClassPlace | None]]:
    """Return the tasks that this process has registered beyond the library's own.

    Returns:
        Task to where its dataset, config and curriculum are.

    Raises:
        SettingError: A worker cannot import one of these.
    """
    factory: Any = sys.modules.get(f"{PACKAGE}.factory")
    found = {}
    for task, classes in dict(getattr(factory, "DATASETS", {})).items():
        every = [*classes, factory.CURRICULA.get(task)]
        packages = {cls.__module__.partition(".")[0] for cls in every if cls}
        if task not in KNOWN or packages != {PACKAGE}:
            found[task] = [_place(task, cls) if cls else None for cls in every]
    return found


def _place(task: str, cls: type) -> ClassPlace:
    module: str | None = cls.__module__
    if module == "__main__":  # a worker imports it by another name, as no program
        main: Any = sys.modules[module]
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        module = spec.name if spec else file and str(Path(file).resolve())
    if not module or "<" in cls.__qualname__:
        raise SettingError(
            f"task {shown(task)}: workers cannot import {cls.__qualname__}, which is"
            f" defined {'inside a function' if module else 'in no file'}; put it at the"
            " top of a module"
        )
    return module, cls.__qualname__


def preloads(named: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what a fork server calls so that its workers know a user's tasks.

    Nothing where there are none. Raises like `registered_here`.
    """
    order = list(named), registered_here()
    return (f"{LOAD}{json.dumps(order)}",) if any(order) else ()


def modules_of(preload: Sequence[str]) -> list[str]:
    """Return the modules that what a fork server calls is about."""
    found: dict[str, None] = {}
    for call in preload:
        if call.startswith(LOAD):
            named, registered = json.loads(call.removeprefix(LOAD))
            places = [place[0] for row in registered.values() for place in row if place]
            found |= dict.fromkeys([*named, *places])
    return [m for m in found if m.partition(".")[0] != PACKAGE]


# -- in the process that they are forked from -----------------------------------------


def load(order: str) -> None:
    """Import modules, register what is not registered yet, take over their rules.

    Args:
        order: JSON of the modules and, by task, the places of its classes.

    Raises:
        SettingError: One cannot be used.
    """
    named, registered = json.loads(order)
    factory = load_factory()
    library = set(factory.DATASETS)
    for task, places in registered.items():
        with _refusing(f"task {shown(task)}: workers cannot import its classes"):
            classes = [place and _class(*place) for place in places]
            if factory.DATASETS.get(task) != tuple(classes[:2]):
                factory.register_dataset(task, *classes)
    for module in named:
        with _refusing(f"{_shown(module)} cannot be imported"):
            _imported(module)
    own = {t: pair for t, pair in factory.DATASETS.items() if t not in library}
    if named and not own:
        raise _unusable(
            f"{', '.join(map(_shown, named))} registers no task;"
            " reasoning_gym.factory.register_dataset does"
        )
    found = {id(module): module for module in map(_imported, named)}
    for task, (dataset, config) in sorted(own.items()):
        with _refusing(f"task {shown(task)}: its config cannot be read"):
            _ = [default_text(field) for field in dataclasses.fields(config)]
        own_tasks.TASKS.add(task)
        for cls in (dataset, config, factory.CURRICULA.get(task)):
            if cls and cls.__module__.partition(".")[0] != PACKAGE:
                module = sys.modules[cls.__module__]
                found[id(module)] = module
    own_tasks.DIGESTS.update(_digests_of(found.values()))
    _take_rules(found.values())


def _unusable(sentence: str) -> SettingError:
    return SettingError(f"tasks of your own: {sentence}")


def _class(module: str, qualname: str) -> Any:
    return operator.attrgetter(qualname)(_imported(module))


def _imported(module: str) -> ModuleType:
    """Import a module by its name, or from its file, which may import what is beside.

    A file is imported by its name where that is how others import it.
    """
    file = Path(module)
    if not file.is_absolute():
        return importlib.import_module(module)
    for known in list(sys.modules.values()):
        if getattr(known, "__file__", None) == module:
            return known
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    found = importlib.util.find_spec(file.stem) if "." not in file.stem else None
    if found is not None and os.path.realpath(found.origin or "") == module:
        return importlib.import_module(file.stem)
    spec: Any = importlib.util.spec_from_file_location(module, module)
    loaded = sys.modules[module] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def _shown(module: str) -> str:
    return Path(module).name if Path(module).is_absolute() else module


@contextlib.contextmanager
def _refusing(what: str) -> Iterator[None]:
    try:
        yield
    except BaseException as error:  # a module may also exit or raise KeyboardInterrupt
        cause = printable(own_tasks.cause_of(error))
        raise _unusable(f"{what} ({cause})") from error


def _digests_of(modules: Iterable[ModuleType]) -> dict[str, str]:
    found: dict[str, Any] = {}
    for module in modules:
        digest = found.setdefault(_shown(module.__name__), hashlib.sha256())
        with contextlib.suppress(OSError):  # a module may be of no file
            digest.update(Path(module.__file__ or "").read_bytes())
    return {name: digest.hexdigest()[:12] for name, digest in sorted(found.items())}


def _take_rules(modules: Iterable[ModuleType]) -> None:
    """Add the rows of `RULES` of these modules to the table of rules."""
    for module in modules:
        given = getattr(module, "RULES", ())
        for row in given if isinstance(given, (list, tuple)) else [given]:
            is_row = isinstance(row, TaskRules) and own_tasks.is_own(row.task)
            if not is_row or table.TABLE.setdefault(row.task, row) is not row:
                raise _unusable(
                    f"RULES of {_shown(module.__name__)} holds {shown(row)}; expected"
                    " one TaskRules for each of your tasks"
                )
