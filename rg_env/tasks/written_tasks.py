"""Names of tasks, compared with the list that is written down of the library.

The library's import takes seconds, for which nobody wants to wait who has mistyped a
task. Only where the installed library is the one of the list does it say anything: the
registry has the last word on all else.
"""

from __future__ import annotations

import fnmatch
import importlib.util
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from rg_env.errors import unknown_name
from rg_env.tasks import broken_library
from rg_env.tasks.fallback_tasks import LIBRARY_VERSION, TASKS
from rg_env.tasks.library import MIXTURE, SUBMODULE

FIELDS = ("tasks", "exclude_tasks", "task_weights", "task_params", "task_levels")
"""Settings that hold names of tasks, as a list or as keys."""


def is_library_of_list() -> bool:
    """Say whether what would be imported is the release that the list was made of."""
    if broken_library.has_package(SUBMODULE):
        return False
    try:
        installed = metadata.distribution("reasoning-gym")
    except metadata.PackageNotFoundError:
        return False
    found = importlib.util.find_spec(broken_library.PACKAGE)
    if installed.version != LIBRARY_VERSION or found is None or found.origin is None:
        return False
    # Another copy may come first on the path, with tasks of its own.
    packaged = installed.locate_file(f"{broken_library.PACKAGE}/__init__.py")
    return Path(str(packaged)).resolve() == Path(found.origin).resolve()


def refuse_unknown(settings: Mapping[str, Any]) -> None:
    """Refuse a name or pattern that none of the tasks on the list has.

    Args:
        settings: Fields of the environment that are lists or maps, checked as such.

    Raises:
        SettingError: The field, the name and the nearest one.
    """
    known = [*TASKS, MIXTURE]
    for field in FIELDS:
        names: Iterable[str] = settings.get(field) or ()
        for name in names:
            if not fnmatch.filter(known, name):
                raise unknown_name(f"env.{field}", name, known, "task")
