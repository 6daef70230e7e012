"""Which copy of reasoning-gym is imported, how, and what is wrong where it cannot be.

A populated `reasoning-gym/` folder beside the project (the git submodule) is used
instead of the installed package. The library is imported on first use, because it takes
two seconds and a hundred megabytes. Its code may raise anything meanwhile: a checkout
may be half there or edited, a package that it needs may be missing, a version may be
another one.

`library_tasks.json` lists the tasks of one release, for what has to be known without
an import.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import importlib.util
import json
import sys
import traceback
import types
from collections.abc import Iterator, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from rg_env.errors import LibraryError
from rg_env.task_rules.faster_functions import replace
from rg_env.task_rules.table import TABLE

PACKAGE = "reasoning_gym"
SUBMODULE = Path(__file__).resolve().parents[2] / "reasoning-gym"

LIBRARY_TASKS = Path(__file__).with_name("library_tasks.json")
_LIST = json.loads(LIBRARY_TASKS.read_text(encoding="utf-8"))
LIBRARY_VERSION: str = _LIST["library_version"]
CATEGORIES: Mapping[str, str] = _LIST["tasks"]
"""Every task of that release to its category, by `tools/make_library_tasks.py`."""
TASKS = tuple(CATEGORIES)

PLOT_PACKAGES = ("matplotlib", "mpl_toolkits")

INSTALL = "`pip install -r requirements.txt`"
REINSTALL = (
    f"`pip install --force-reinstall --no-deps reasoning-gym=={LIBRARY_VERSION}`"
)
SITE_FOLDERS = ("site-packages", "dist-packages")
MAX_CAUSE_CHARS = 200


def _is_submodule_filled() -> bool:
    return (SUBMODULE / PACKAGE / "__init__.py").is_file()


def is_release_of_list() -> bool:
    """Say whether what would be imported is the release that the list was made of."""
    if _is_submodule_filled():
        return False
    try:
        installed = importlib.metadata.distribution("reasoning-gym")
    except importlib.metadata.PackageNotFoundError:
        return False
    found = importlib.util.find_spec(PACKAGE)
    if installed.version != LIBRARY_VERSION or found is None or found.origin is None:
        return False
    # Another copy may come first on the path, with tasks of its own.
    packaged = installed.locate_file(f"{PACKAGE}/__init__.py")
    return Path(str(packaged)).resolve() == Path(found.origin).resolve()


@functools.cache
def load_factory() -> Any:
    """Import `reasoning_gym.factory`, from the submodule when it is populated.

    What has a faster equal is replaced by it, from then on and for the whole process.

    Raises:
        LibraryError: It cannot be imported.
    """
    if _is_submodule_filled():
        sys.path.insert(0, str(SUBMODULE))
    try:
        with _no_plots():
            importlib.import_module("reasoning_gym")
            factory = importlib.import_module("reasoning_gym.factory")
    except (Exception, SystemExit) as error:  # a broken install may raise anything
        raise _not_importable(error) from error
    replace(one for row in TABLE.values() for one in row.faster)
    return factory


def published_system_prompt() -> str:
    """Return the system prompt of the published evaluations, "" if it is not there."""
    prompts = getattr(sys.modules.get(f"{PACKAGE}.utils"), "SYSTEM_PROMPTS", {})
    return str(prompts.get("default", ""))


# -- without matplotlib ----------------------------------------------------------------


class _Empty(types.ModuleType):
    """A module of which every name is None."""

    __path__: list[str] = []  # noqa: RUF012 - a package, as Python knows one

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> ModuleSpec | None:
        is_plots = fullname.partition(".")[0] in PLOT_PACKAGES
        return ModuleSpec(fullname, self, is_package=True) if is_plots else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


@contextlib.contextmanager
def _no_plots() -> Iterator[None]:
    """Have what imports matplotlib inside get an empty one; others get the real one.

    One of the library's packages, cellpylib, imports it to draw cellular automata,
    which nothing uses. It is a third of what importing the library takes, and on a new
    machine it starts `fc-list` and writes a cache of fonts.
    """
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [n for n, m in sys.modules.items() if isinstance(m, _Empty)]:
            del sys.modules[name]


# -- what is wrong with it -------------------------------------------------------------


def _not_importable(error: BaseException) -> LibraryError:
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing == PACKAGE:
        found = "reasoning-gym cannot be imported, because it is not installed"
        if SUBMODULE.is_dir() and any(SUBMODULE.iterdir()):
            found += f" and {SUBMODULE} does not hold its package {PACKAGE}"
        return LibraryError(
            f"{found}; {INSTALL} installs it, and `git submodule update --init"
            " reasoning-gym` takes its repository instead"
        )
    if missing is not None and missing.partition(".")[0] != PACKAGE:
        return LibraryError(
            "reasoning-gym cannot be imported: it needs the package"
            f" {missing.partition('.')[0]!r}, which is not installed; {INSTALL}"
            " installs all that it needs"
        )
    place = f" from {_folder()}" if _folder() else ""
    return LibraryError(
        f"reasoning-gym cannot be imported{place} ({_cause(error)}); {_repair()}"
    )


def not_readable(error: BaseException) -> LibraryError:
    """Return the sentence for a library whose registry is another than expected."""
    return LibraryError(
        f"the tasks of reasoning-gym at {_folder()} cannot be read ({_cause(error)}),"
        f" so it is broken or of another version than {LIBRARY_VERSION}; {_repair()}"
    )


def without_tasks() -> LibraryError:
    """Return the sentence for a library that registers nothing."""
    return LibraryError(f"reasoning-gym at {_folder()} registers no task; {_repair()}")


def _repair() -> str:
    if _is_submodule_filled():
        return (
            "repair the checkout with `git submodule update --init --force"
            f" reasoning-gym`, or empty {SUBMODULE} to use the installed package"
        )
    folder = _folder()
    if folder is None or folder.parent.name in SITE_FOLDERS:
        return f"repair it with {REINSTALL}"
    return f"repair it there, or take {folder.parent} off PYTHONPATH"


def _folder() -> Path | None:
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except (ImportError, ValueError, AttributeError):
        return None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return Path(folders[0]) if folders else None


def said_of(error: BaseException) -> str:
    """Return the kind of an exception and the first line of what it says."""
    said = str(error).strip().partition("\n")[0]
    kind = type(error).__name__
    return (f"{kind}: {said}" if said else kind)[:MAX_CAUSE_CHARS]


def _cause(error: BaseException) -> str:
    """Return an exception in a few words, with the place in the library."""
    cause = said_of(error)
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if f"/{PACKAGE}/" in frame.filename]
    # A syntax error names file and line itself.
    if isinstance(error, SyntaxError) or not inside:
        return cause
    file = inside[-1].filename.rpartition(f"/{PACKAGE}/")[2]
    return f"{cause}, at {PACKAGE}/{file}:{inside[-1].lineno}"
