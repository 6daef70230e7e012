"""The modules that register tasks of a user's own: which they are, and their import.

They are the modules that a setting names, and those of the classes that a process has
registered with reasoning-gym before it starts workers. That process imports none of
them, nor the library: it looks at what is imported already, and orders the process that
workers are forked from to `load` them.

There each task is checked as far as it can be without running it, and the rules that a
module holds as `RULES` are added to the table. Sources are read there and not again,
since whoever writes a task changes its file while a run goes on.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import hashlib
import importlib
import importlib.util
import json
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import msgspec

from rg_env.errors import SettingError, printable, shown, unexpected
from rg_env.task_rules import table
from rg_env.task_rules.rules import MIXTURE, TaskRules
from rg_env.tasks import own_tasks
from rg_env.tasks.library import default_text
from rg_env.tasks.library_import import PACKAGE, TASKS, load_factory

IMPORT_LIMIT_S = 45.0
"""For all modules; a fork server has a minute for all that it imports."""

ClassPlace = tuple[str, str]
"""A module, by its name or the path of its file, and the name of a class in it."""

Registry = Mapping[str, tuple[Any, Any]]

NAME = re.compile(r"[\w.-]+")
CONFIG_FIELDS = ("seed", "size")

_folders: set[Path] = set()
"""Those of the files that were imported by their paths."""

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
        is_librarys = task in KNOWN and packages == {PACKAGE}
        if not is_librarys:
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

    Args:
        named: As `checked` returns them.

    Returns:
        Nothing where there are none.

    Raises:
        SettingError: A worker cannot import a task that is registered here.
    """
    registered = registered_here()
    if not named and not registered:
        return ()
    return (f"{LOAD}{json.dumps([list(named), registered])}",)


def modules_of(preload: Sequence[str]) -> list[str]:
    """Return the modules that what a fork server calls is about."""
    orders = [call.removeprefix(LOAD) for call in preload if call.startswith(LOAD)]
    found: dict[str, None] = {}
    for order in orders:
        named, registered = json.loads(order)
        found |= dict.fromkeys(named)
        places = (place for row in registered.values() for place in row if place)
        found |= dict.fromkeys(module for module, _ in places)
    return [m for m in found if m.partition(".")[0] != PACKAGE]


# -- in the process that they are forked from -----------------------------------------


def load(order: str) -> None:
    """Import modules, register what is not registered yet, take over their rules.

    Args:
        order: JSON of the modules and, by task, the places of its classes.

    Raises:
        SettingError: One cannot be used.
    """
    kind = tuple[list[str], dict[str, tuple[ClassPlace, ClassPlace, ClassPlace | None]]]
    named, registered = msgspec.json.decode(order, type=kind)
    factory = load_factory()
    library: Registry = dict(factory.DATASETS)
    with _limited(), _helpers_from_beside():
        for task, places in registered.items():
            _register(factory, library, task, places)
        for module in named:
            with _refusing(f"{_shown(module)} cannot be imported"):
                _imported(module)
    own = _own(factory.DATASETS, library)
    if named and not own:
        raise _unusable(
            f"{', '.join(map(_shown, named))} registers no task;"
            " reasoning_gym.factory.register_dataset does"
        )
    classes = [cls for pair in own.values() for cls in pair]
    classes += [factory.CURRICULA[task] for task in own if task in factory.CURRICULA]
    modules = _modules(named, classes)
    own_tasks.note_digests(_digests_of(modules))
    _take_rules(modules)


def _unusable(sentence: str) -> SettingError:
    return SettingError(f"tasks of your own: {sentence}")


# -- importing them --------------------------------------------------------------------


def _register(
    factory: Any, library: Registry, task: str, places: Sequence[ClassPlace | None]
) -> None:
    """Register a task of the owner's process, unless an import has done so."""
    with _refusing(f"task {shown(task)}: workers cannot import its classes"):
        dataset, config, curriculum = (place and _class(*place) for place in places)
        is_there = factory.DATASETS.get(task) == (dataset, config)
        if not is_there and task in library:
            raise ValueError("the library has a task of this name")
        if not is_there:
            factory.register_dataset(task, dataset, config, curriculum)


def _class(module: str, qualname: str) -> Any:
    found: Any = _imported(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    return found


def _imported(module: str) -> ModuleType:
    """Import a module by its name or, where it is a path, from its file."""
    if not Path(module).is_absolute():
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name == module:
                error.msg += "; a file is named by its path, which ends in .py"
            raise
    for known in list(sys.modules.values()):
        if getattr(known, "__file__", None) == module:
            return known
    return _imported_file(Path(module))


def _imported_file(file: Path) -> ModuleType:
    """Import a file; by its name where that is how others import it."""
    place = file.parent if file.name == "__init__.py" else file
    _folders.add(place.parent)
    if str(place.parent) not in sys.path:  # it may import what lies beside it
        sys.path.append(str(place.parent))
    found = importlib.util.find_spec(place.stem) if "." not in place.stem else None
    if found is not None and os.path.realpath(found.origin or "") == str(file):
        return importlib.import_module(place.stem)
    spec = importlib.util.spec_from_file_location(
        *(str(file), file),
        loader=SourceFileLoader(str(file), str(file)),
        submodule_search_locations=None if place == file else [str(place)],
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module")
    loaded = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@contextlib.contextmanager
def _helpers_from_beside() -> Iterator[None]:
    """Raise ImportError in a file that gets another module than the one beside it.

    Python has one module of a name: that of the file which was imported first, or
    which comes first on the path.
    """
    python_import = builtins.__import__

    def importing(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        found = python_import(name, globals, locals, fromlist or (), level)
        importer = Path(str((globals or {}).get("__file__")))
        top, folder = name.partition(".")[0], importer.parent
        beside = (folder / top / "__init__.py", folder / f"{top}.py")
        file = next((path for path in beside if path.is_file()), importer)
        if level == 0 and folder in _folders and file != importer:
            got = getattr(sys.modules.get(top), "__file__", None) or "Python's own"
            if os.path.realpath(got) != os.path.realpath(file):
                raise ImportError(
                    f"{top} is {got}, and not the file beside this one; give that"
                    " file another name"
                )
        return found

    builtins.__import__ = importing
    try:
        yield
    finally:
        builtins.__import__ = python_import


def _shown(module: str) -> str:
    return Path(module).name if Path(module).is_absolute() else module


@contextlib.contextmanager
def _refusing(what: str) -> Iterator[None]:
    try:
        yield
    except BaseException as error:  # a module may also exit or raise KeyboardInterrupt
        cause = printable(own_tasks.cause_of(error))
        if isinstance(error, SystemExit):
            cause += "; what is not for workers stands under `if __name__ ==` there"
        raise _unusable(f"{what} ({cause})") from error


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise TimeoutError in what Python code runs inside for too long."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"not done after {IMPORT_LIMIT_S:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, IMPORT_LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# -- what they have registered ---------------------------------------------------------


def _own(registry: Registry, library: Registry) -> Registry:
    """Return the tasks that are not the library's, checked; and know them from now on.

    Raises:
        SettingError: One of the library's is another one now, or one cannot be used.
    """
    changed = [task for task in library if registry[task] != library[task]]
    if changed:
        raise _unusable(
            f"task {shown(changed[0])} of reasoning-gym is registered anew; give the"
            " other one a name of its own"
        )
    others = registry.keys() - library.keys() - {MIXTURE}
    own = {task: registry[task] for task in sorted(others)}
    for task, (_, config) in own.items():
        if not NAME.fullmatch(task):
            raise _unusable(
                f"the name {shown(task)} of a task; allowed are letters, digits and ._-"
            )
        with _refusing(f"task {shown(task)}: its config cannot be read"):
            fields = {f.name: default_text(f) for f in dataclasses.fields(config)}
        for name in CONFIG_FIELDS:
            if name not in fields:
                raise _unusable(
                    f"task {shown(task)}: its config {config.__name__} has no field"
                    f" {name!r}; every data set is made with seed and size"
                )
        own_tasks.know(task)
    return own


def _modules(named: Sequence[str], classes: Sequence[type]) -> list[ModuleType]:
    """Return the modules that were named, and those of the classes; each once."""
    others = [c.__module__ for c in classes if c.__module__.split(".")[0] != PACKAGE]
    of_classes = (sys.modules[name] for name in others if name in sys.modules)
    found = [*map(_imported, named), *of_classes]
    return list({id(module): module for module in found}.values())


def _digests_of(modules: Sequence[ModuleType]) -> dict[str, str]:
    found: dict[str, Any] = {}
    for module in modules:
        digest = found.setdefault(_shown(module.__name__), hashlib.sha256())
        with contextlib.suppress(OSError):  # a module may be of no file
            digest.update(Path(module.__file__ or "").read_bytes())
    return {name: digest.hexdigest()[:12] for name, digest in sorted(found.items())}


def _take_rules(modules: Sequence[ModuleType]) -> None:
    """Add the rows of `RULES` of these modules to the table of rules."""
    for module in modules:
        given = getattr(module, "RULES", ())
        rules = f"RULES of {_shown(module.__name__)}"
        for row in given if isinstance(given, (list, tuple)) else [given]:
            if not isinstance(row, TaskRules):
                raise _unusable(
                    f"{rules} holds {shown(row)}; allowed is a TaskRules, or a list"
                )
            if not own_tasks.is_own(row.task):
                raise _unusable(
                    f"{rules} is for {shown(row.task)}, which is not one of your tasks"
                )
            if table.TABLE.setdefault(row.task, row) is not row:
                raise _unusable(f"{rules} is the second one for {shown(row.task)}")
