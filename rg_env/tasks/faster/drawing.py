"""Loading cellpylib without matplotlib, which it imports to draw.

The tasks only compute automata with cellpylib. Matplotlib is a third of the time and a
quarter of the memory that loading reasoning-gym 0.1.25 takes: 0.3 of 0.9 s, 31 of 117
MB.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

DRAWING = frozenset({"matplotlib", "mpl_toolkits"})


def load_cellpylib() -> None:
    """Import cellpylib, if it is installed, with hollow modules for matplotlib.

    What it took from them raises a RuntimeError when it is used. All other imports of
    matplotlib give the real one, and so does cellpylib's own, later, if it is of a
    version that uses it while it is loaded.
    """
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        importlib.import_module("cellpylib")
    except (ImportError, RuntimeError, TypeError):  # not there, called, derived from
        _forget(name for name in sys.modules if name.partition(".")[0] == "cellpylib")
    finally:
        sys.meta_path.remove(finder)
        modules = sys.modules.items()
        _forget(name for name, module in modules if isinstance(module, _Hollow))


def _forget(names: Iterable[str]) -> None:
    for name in list(names):
        del sys.modules[name]


class _Absent:
    """A name of a library that is not loaded."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self) -> NoReturn:
        raise RuntimeError(f"{self._name} is not loaded where items are made")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse()


class _Hollow(ModuleType):
    """A module that has every name, each absent."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(f"{self.__name__}.{name}")


class _Finder(MetaPathFinder, Loader):
    """Finds a hollow module for every name of the drawing library."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> ModuleSpec | None:
        """Return the specification of a hollow module; None for others."""
        if fullname.partition(".")[0] not in DRAWING:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the hollow module."""
        return _Hollow(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Put nothing into it."""
