"""Which modules register tasks of a user's own, as the workers are told of them.

They are the modules that a setting names, and those of the classes that this process
has registered with reasoning-gym before it starts workers. This process imports none of
them, nor the library: it looks at what is imported already.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rg_env.errors import SettingError, shown, unexpected
from rg_env.task_rules.rules import MIXTURE
from rg_env.tasks import own_task_loading
from rg_env.tasks.library_import import PACKAGE, TASKS

KNOWN = {*TASKS, MIXTURE}
LOAD = f"{own_task_loading.__name__}:{own_task_loading.load.__name__}:"


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


def registered_here() -> dict[str, list[own_task_loading.ClassPlace | None]]:
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


def _place(task: str, cls: type) -> own_task_loading.ClassPlace:
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
