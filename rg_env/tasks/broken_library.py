"""What is wrong with an installed reasoning-gym that cannot be used, in one sentence.

The library's code may raise anything while it is imported: a checkout may be half there
or edited, a package that it needs may be missing, a version may be another one.
"""

from __future__ import annotations

import importlib.util
import traceback
from pathlib import Path

from rg_env.errors import LibraryError
from rg_env.tasks.fallback_tasks import LIBRARY_VERSION

PACKAGE = "reasoning_gym"
INSTALL = "`pip install -r requirements.txt`"
REINSTALL = (
    f"`pip install --force-reinstall --no-deps reasoning-gym=={LIBRARY_VERSION}`"
)
SITE_FOLDERS = ("site-packages", "dist-packages")
MAX_CAUSE_CHARS = 200


def not_importable(error: BaseException, submodule: Path) -> LibraryError:
    """Return the sentence for a library that cannot be imported.

    Args:
        error: What its import raised.
        submodule: The folder of the submodule, be it there or not.
    """
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing == PACKAGE:
        return LibraryError(_not_there(submodule))
    if missing is not None and missing.partition(".")[0] != PACKAGE:
        return LibraryError(
            "reasoning-gym cannot be imported: it needs the package"
            f" {missing.partition('.')[0]!r}, which is not installed; {INSTALL}"
            " installs all that it needs"
        )
    return LibraryError(
        f"reasoning-gym cannot be imported{_place('from')} ({_cause(error)});"
        f" {_repair(submodule)}"
    )


def not_readable(error: BaseException, submodule: Path) -> LibraryError:
    """Return the sentence for a library whose registry is another than expected."""
    return LibraryError(
        f"the tasks of reasoning-gym{_place('at')} cannot be read ({_cause(error)}), so"
        f" it is broken or of another version than {LIBRARY_VERSION};"
        f" {_repair(submodule)}"
    )


def without_tasks(submodule: Path) -> LibraryError:
    """Return the sentence for a library that registers nothing."""
    return LibraryError(
        f"reasoning-gym{_place('at')} registers no task; {_repair(submodule)}"
    )


def has_package(submodule: Path) -> bool:
    """Say whether the folder of the submodule holds the library."""
    return (submodule / PACKAGE / "__init__.py").is_file()


def _not_there(submodule: Path) -> str:
    found = "reasoning-gym cannot be imported, because it is not installed"
    if submodule.is_dir() and any(submodule.iterdir()):
        found += f" and {submodule} does not hold its package {PACKAGE}"
    return (
        f"{found}; {INSTALL} installs it, and `git submodule update --init"
        " reasoning-gym` takes its repository instead"
    )


def _repair(submodule: Path) -> str:
    if has_package(submodule):
        return (
            "repair the checkout with `git submodule update --init --force"
            f" reasoning-gym`, or empty {submodule} to use the installed package"
        )
    folder = _folder()
    if folder is None or folder.parent.name in SITE_FOLDERS:
        return f"repair it with {REINSTALL}"
    return f"repair it there, or take {folder.parent} off PYTHONPATH"


def _place(preposition: str) -> str:
    """Return where the library is, behind a preposition; "" if it is nowhere."""
    folder = _folder()
    return "" if folder is None else f" {preposition} {folder}"


def _folder() -> Path | None:
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except (ImportError, ValueError, AttributeError):
        return None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return Path(folders[0]) if folders else None


def _cause(error: BaseException) -> str:
    """Return an exception in a few words, with the place in the library."""
    said = str(error).strip().partition("\n")[0]
    cause = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if isinstance(error, SyntaxError):  # its text names file and line
        return cause[:MAX_CAUSE_CHARS]
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if f"/{PACKAGE}/" in frame.filename]
    if inside:
        file = inside[-1].filename.rpartition(f"/{PACKAGE}/")[2]
        cause = f"{cause[:MAX_CAUSE_CHARS]}, at {PACKAGE}/{file}:{inside[-1].lineno}"
    return cause
