"""Imports reasoning-gym, and describes the tasks that it registers.

A populated `reasoning-gym/` folder in the project (the git submodule) is used instead
of the installed package. Only this module imports the library, and only on first use,
because that takes two seconds and a hundred megabytes. The import may raise anything:
the checkout may be incomplete, or of another version.

`library_tasks.json` lists the tasks of one release, for uses without an import.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import importlib.metadata
import json
import re
import sys
import traceback
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rg_env.errors import LibraryError, shown, unknown_name
from rg_env.task_rules.faster_functions import replace, source_digest
from rg_env.task_rules.rules import MIXTURE
from rg_env.task_rules.table import TABLE

PACKAGE = "reasoning_gym"
SUBMODULE = Path(__file__).resolve().parents[2] / "reasoning-gym"

LIBRARY_TASKS = Path(__file__).with_name("library_tasks.json")
_RELEASE = json.loads(LIBRARY_TASKS.read_bytes())
LIBRARY_VERSION: str = _RELEASE["library_version"]
CATEGORIES: Mapping[str, str] = _RELEASE["tasks"]
"""Task of that release to its category; `tools/make_pages.py` writes the file."""
SCORERS: Mapping[str, str] = _RELEASE["scorers"]
"""Task of that release to the `source_digest` of its scorer."""
TASKS = tuple(CATEGORIES)

OWN_CATEGORY = "own"
OWN_TASKS: set[str] = set()
"""A user's own tasks; filled in processes that have loaded them, see own_tasks.py."""
OWN_MODULES: dict[str, str] = {}
"""Module of a user's own tasks to the digest of its source; filled as `OWN_TASKS`."""


@dataclasses.dataclass(frozen=True)
class TaskInfo:
    """The description of one task."""

    name: str
    category: str  # the subpackage of the library, such as "arithmetic", or "own"
    parameters: Mapping[str, str]  # to the default as text, without `seed` and `size`
    has_curriculum: bool
    summary: str = ""  # the first docstring line of a user's own dataset
    languages: tuple[str, ...] = ()  # of questions; none in a version with one language


@dataclasses.dataclass(frozen=True)
class LibraryDescription:
    """The description of the installed library."""

    tasks: Mapping[str, TaskInfo]
    version: str
    location: str
    system_prompt: str = ""  # used in the library's published evaluations
    # Modules of a user's own tasks, to their digests.
    modules: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def versions(self) -> dict[str, str]:
        """The version of the library, and the digests of a user's modules."""
        return {"reasoning_gym": self.version, **self.modules}

    @property
    def release(self) -> str:
        """The versions as text."""
        modules = (f" with {name} {digest}" for name, digest in self.modules.items())
        return self.version + "".join(modules)


def _is_submodule_filled() -> bool:
    return (SUBMODULE / PACKAGE / "__init__.py").is_file()


@functools.cache
def load_factory() -> Any:
    """Import `reasoning_gym.factory`, and replace some functions by faster ones.

    Raises:
        LibraryError: It cannot be imported.
    """
    if _is_submodule_filled():
        sys.path.insert(0, str(SUBMODULE))
    try:
        with _no_plots():
            factory = importlib.import_module("reasoning_gym.factory")
    except (Exception, SystemExit) as error:  # a broken install may raise anything
        raise _library_error(error) from error
    replace(faster for rules in TABLE.values() for faster in rules.faster)
    return factory


PLOT_MODULES = (
    "matplotlib",
    "matplotlib.animation",
    "matplotlib.collections",
    "matplotlib.pyplot",
    "mpl_toolkits",
    "mpl_toolkits.mplot3d",
)


class _Empty(types.ModuleType):
    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


@contextlib.contextmanager
def _no_plots() -> Iterator[None]:
    """Replace matplotlib by empty modules for the imports inside."""
    # The library's cellpylib imports matplotlib to draw cellular automata, and nothing
    # here draws. That is a third of the import time of the library, and on a new
    # machine it starts `fc-list` and writes a cache of fonts.
    empty = {name: _Empty(name) for name in PLOT_MODULES if name not in sys.modules}
    sys.modules.update(empty)
    try:
        yield
    finally:
        for name in empty:
            del sys.modules[name]


def _library_error(error: BaseException) -> LibraryError:
    options = f"--force-reinstall --no-deps reasoning-gym=={LIBRARY_VERSION}"
    repair = f"`pip install {options}` installs it again"
    if _is_submodule_filled():
        repair = (
            "repair the checkout with `git submodule update --init --force"
            f" reasoning-gym`, or empty {SUBMODULE} to use the installed package"
        )
    if isinstance(error, ModuleNotFoundError):
        repair = f"`pip install -r requirements.txt` adds missing packages; {repair}"
    return LibraryError(f"reasoning-gym cannot be used ({cause_of(error)}); {repair}")


def cause_of(error: BaseException) -> str:
    """Return class and first line of an exception, and its line in a user's file."""
    first_line = str(error).strip().partition("\n")[0]
    class_name = type(error).__name__
    cause = (f"{class_name}: {first_line}" if first_line else class_name)[:200]
    our_folder = str(Path(__file__).parents[1])
    import_folder = str(Path(importlib.__file__).parent)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<", our_folder, import_folder))
        and f"/{PACKAGE}/" not in frame.filename
    ]
    # A syntax error names file and line itself.
    if not frames or isinstance(error, SyntaxError):
        return cause
    file = frames[0].filename
    line = [frame.lineno for frame in frames if frame.filename == file][-1]
    return f"{cause}, at {Path(file).name}:{line}"


def _version(package_dir: Path) -> str:
    """Return the library's version; the library's `__version__` is out of date."""
    if package_dir.parent != SUBMODULE.resolve():
        return importlib.metadata.version("reasoning-gym")
    project = (package_dir.parent / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version\s*=\s*"([^"]+)"', project, re.M)
    return version[1] if version else "unknown"


def defaults_of(config_cls: type) -> dict[str, Any]:
    """Return the parameters of a config that have a default, with their defaults."""
    values = {}
    for field in dataclasses.fields(config_cls):
        if field.default is not dataclasses.MISSING:
            values[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            values[field.name] = field.default_factory()
    return values


def check_config(task: str, params: Mapping[str, Any]) -> None:
    """Raise the error of a task's config if it does not accept these parameters."""
    config = load_factory().DATASETS[task][1](**params)
    if hasattr(config, "validate"):
        config.validate()


def _task_info(name: str, dataset_cls: type, config_cls: type) -> TaskInfo:
    names = dataset_cls.__module__.split(".")
    category = names[1] if len(names) >= 3 else "other"
    summary = ""
    if name in OWN_TASKS:
        category = OWN_CATEGORY
        summary = (dataset_cls.__doc__ or "").strip().partition("\n")[0]
    defaults = defaults_of(config_cls)
    parameters = {
        field.name: repr(defaults[field.name]) if field.name in defaults else "required"
        for field in dataclasses.fields(config_cls)
        if field.name not in ("seed", "size")
    }
    return TaskInfo(
        name=name,
        category=category,
        parameters=parameters,
        has_curriculum=name in load_factory().CURRICULA,
        summary=summary,
        languages=_languages(name, dataset_cls),
    )


def _languages(task: str, dataset_cls: type) -> tuple[str, ...]:
    # The multilingual version accepts the parameter `languages` for every task, and
    # ignores it in those that are not translated.
    multilingual = sys.modules.get(f"{PACKAGE}.multilingual")
    if multilingual is None or task in OWN_TASKS:
        return ()
    if not issubclass(dataset_cls, multilingual.MultilingualProceduralDataset):
        return ("en",)
    return tuple(multilingual.TranslationManager().get_available_languages(task))


def changed_scorers(tasks: Iterable[str]) -> list[str]:
    """Return the tasks whose scorers are not those that `scorer_fixes` corrects."""
    classes = load_factory().DATASETS
    return [
        task
        for task in tasks
        if task not in OWN_TASKS
        and source_digest(classes[task][0].score_answer) != SCORERS.get(task)
    ]


@functools.cache
def describe() -> LibraryDescription:
    """Describe every registered task but the mixture, sorted, or raise LibraryError."""
    factory = load_factory()
    prompts = getattr(sys.modules.get(f"{PACKAGE}.utils"), "SYSTEM_PROMPTS", {})
    try:
        package_dir = Path(factory.__file__).resolve().parent
        return LibraryDescription(
            tasks={
                name: _task_info(name, *classes)
                for name, classes in sorted(factory.DATASETS.items())
                if name != MIXTURE
            },
            version=_version(package_dir),
            location=str(package_dir),
            system_prompt=str(prompts.get("default", "")),
            modules=OWN_MODULES,
        )
    except Exception as error:  # the registry of another version may hold anything
        raise _library_error(error) from error


def rejected_params(
    params_by_task: Iterable[tuple[str, Mapping[str, Any]]],
) -> tuple[str, str] | None:
    """Return the first task that does not accept its dataset parameters, and why."""
    for task, params in params_by_task:
        info = describe().tasks[task]
        for name in params:
            if name not in info.parameters:
                return task, unknown_name("", name, info.parameters, "parameter").reason
        try:
            languages = params.get("languages", ()) if info.languages else ()
            for language in [languages] if isinstance(languages, str) else languages:
                if language not in info.languages:
                    known = ", ".join(info.languages)
                    reason = f"its questions are in {known}, not in {shown(language)}"
                    return task, reason
            check_config(task, params)
        except Exception as error:  # noqa: BLE001 - foreign code on a user's values
            return task, f"its config refuses {shown(dict(params))}: {cause_of(error)}"
    return None
