"""A user's own tasks in the processes that make and score items.

`load` imports their modules before any worker is forked. From then on they are tasks
like the library's, with the rules that a module holds as `RULES`; what they raise is
blamed on them, with the line. A data set of theirs is built for each item, and their
sources are not read again, since whoever writes them changes them while a run goes on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import importlib.util
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import msgspec

from rg_env.errors import SettingError, printable, shown
from rg_env.task_rules import composite, table
from rg_env.task_rules.rules import TaskRules
from rg_env.tasks.library_import import PACKAGE, load_factory, said_of

CATEGORY = "own"

IMPORT_LIMIT_S = 45.0
"""For the modules of all tasks; a fork server has a minute for all that it imports."""

Place = tuple[str, str]
"""A module, by its name or the path of its file, and the name of a class in it."""

_NAME = re.compile(r"[\w.-]+")
_CONFIG_FIELDS = ("seed", "size")

_tasks: dict[str, tuple[type, ...]] = {}
_digests: dict[str, str] = {}


class OwnTaskError(RuntimeError):
    """What a user's task has raised, in a few words, with the place in their file."""


def is_own(task: str) -> bool:
    """Say whether a task is a user's own, in a process that was told of them."""
    return task in _tasks


def names() -> list[str]:
    """Return a user's own tasks, sorted."""
    return sorted(_tasks)


def digests() -> dict[str, str]:
    """Return the digests of their modules' sources, by module."""
    return dict(_digests)


# -- what they raise -------------------------------------------------------------------

_HINT = (
    "; a worker reads no file beside a module: read it while the module is imported, or"
    " make a package of the module"
)


def cause_of(error: BaseException) -> str:
    """Return an exception in a few words, with the place in a user's file."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_not_of_users())
    ]
    said = said_of(error)
    # A syntax error names file and line itself.
    if frames and not isinstance(error, SyntaxError):
        folder = os.path.dirname(frames[0].filename)  # noqa: PTH120 - perhaps no path
        own = [f for f in frames if os.path.dirname(f.filename) == folder]  # noqa: PTH120
        said += f", at {Path(own[-1].filename).name}:{own[-1].lineno}"
    return said + _HINT * isinstance(error, PermissionError)


def _not_of_users() -> tuple[str, ...]:
    """Return what the names of files begin with that are ours, or the library's."""
    ours = str(Path(__file__).resolve().parents[1])
    library = str(Path(sys.modules[PACKAGE].__file__ or "").parent)
    return "<", ours, library, str(Path(importlib.__file__).parent)


@contextlib.contextmanager
def blaming(*passing: type[Exception]) -> Iterator[None]:
    """Turn what a user's code raises inside into `OwnTaskError`, with its place.

    `passing` is what ours raises there.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, (MemoryError, *passing)):
            raise
        raise OwnTaskError(cause_of(error)) from error


def check_entry(entry: object) -> None:
    """Raise TypeError where an entry is not what a data set makes."""
    found = entry if isinstance(entry, dict) else {}
    if not isinstance(found.get("question"), str) or "answer" not in found:
        raise TypeError(
            f"an entry is a dict with question and answer, found {shown(entry)}"
        )


def _unusable(sentence: str) -> SettingError:
    return SettingError(f"tasks of your own: {sentence}")


# -- importing them --------------------------------------------------------------------


def load(order: str) -> None:
    """Import modules, register what is not registered yet, take over their rules.

    Args:
        order: JSON of the modules and, by task, the places of its classes.

    Raises:
        SettingError: One cannot be used.
    """
    kind = tuple[list[str], dict[str, tuple[Place, Place, Place | None]]]
    named, registered = msgspec.json.decode(order, type=kind)
    factory = load_factory()
    library = dict(factory.DATASETS)
    with _limited():
        for task, places in registered.items():
            _register(factory, library, task, places)
        for module in named:
            with _refusing(f"{_shown(module)} cannot be imported"):
                try:
                    _imported(module)
                except ModuleNotFoundError as error:
                    if error.name == module:
                        error.msg += f"; a file has its path, as {module}.py"
                    raise
    changed = [t for t, classes in library.items() if factory.DATASETS[t] != classes]
    if changed:
        raise _unusable(
            f"task {shown(changed[0])} of reasoning-gym is registered anew;"
            " give the other one a name of its own"
        )
    known = {*library, composite.RULES.task}
    for task in sorted(factory.DATASETS.keys() - known):
        _tasks[task] = _checked_classes(factory, task)
    if named and not _tasks:
        raise _unusable(
            f"{', '.join(map(_shown, named))} registers no task;"
            " reasoning_gym.factory.register_dataset does"
        )
    modules = _modules(named)
    _digests.update(_digests_of(modules))
    _take_rules(modules)


def _register(
    factory: Any,
    library: Mapping[str, Any],
    task: str,
    places: Sequence[Place | None],
) -> None:
    """Register a task of the owner's process, unless an import has done so."""
    with _refusing(f"task {shown(task)}: workers cannot import its classes"):
        dataset, config, curriculum = (place and _class(*place) for place in places)
        if factory.DATASETS.get(task) != (dataset, config) and task not in library:
            factory.register_dataset(task, dataset, config, curriculum)
        elif factory.DATASETS[task] != (dataset, config):
            raise ValueError("the library has a task of this name")


def _class(module: str, qualname: str) -> Any:
    found: Any = _imported(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    return found


def _imported(module: str) -> ModuleType:
    """Import a module by its name or, where it is a path, from its file."""
    if not Path(module).is_absolute():
        return importlib.import_module(module)
    for known in list(sys.modules.values()):
        if getattr(known, "__file__", None) == module:
            return known
    file = Path(module)
    place = file.parent if file.name == "__init__.py" else file
    if str(place.parent) not in sys.path:  # it may import what lies beside it
        sys.path.append(str(place.parent))
    found = importlib.util.find_spec(place.stem) if "." not in place.stem else None
    if found is not None and os.path.realpath(found.origin or "") == module:
        return importlib.import_module(place.stem)
    spec = importlib.util.spec_from_file_location(
        *(module, module),
        loader=SourceFileLoader(module, module),
        submodule_search_locations=None if place == file else [str(place)],
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{module} is no module")
    loaded = sys.modules[module] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def _shown(module: str) -> str:
    return Path(module).name if Path(module).is_absolute() else module


@contextlib.contextmanager
def _refusing(what: str) -> Iterator[None]:
    try:
        yield
    except SettingError:
        raise
    except (Exception, SystemExit) as error:
        cause = printable(cause_of(error))
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


def _checked_classes(factory: Any, task: str) -> tuple[type, ...]:
    dataset, config = factory.DATASETS[task]
    if not _NAME.fullmatch(task):
        raise _unusable(
            f"the name {shown(task)} of a task; allowed are letters, digits and ._-"
        )
    lacking = {*_CONFIG_FIELDS} - {field.name for field in dataclasses.fields(config)}
    if lacking:
        raise _unusable(
            f"task {shown(task)}: its config {config.__name__} has no"
            f" field {min(lacking)!r}; every data set is made with seed and size"
        )
    curriculum = factory.CURRICULA.get(task)
    return (dataset, config, curriculum) if curriculum else (dataset, config)


def _modules(named: Sequence[str]) -> list[ModuleType]:
    """Return the modules that were named, and those of the classes; each once."""
    classes = (cls.__module__ for of_task in _tasks.values() for cls in of_task)
    own = [name for name in classes if name.partition(".")[0] != PACKAGE]
    of_classes = (sys.modules[name] for name in own if name in sys.modules)
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
            if row.task not in _tasks:
                raise _unusable(
                    f"{rules} speaks of {shown(row.task)}, which is no task of yours"
                )
            if table.rules_of(row.task) not in (row, TaskRules("")):
                raise _unusable(
                    f"{rules} is the second that speaks of {shown(row.task)}"
                )
            table.TABLE[row.task] = row
