"""The library without matplotlib, which one of its packages imports and nothing uses.

cellpylib imports it to draw cellular automata. It is a third of what importing the
library takes, and on a new machine it starts `fc-list` and writes a cache of fonts.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

PACKAGES = ("matplotlib", "mpl_toolkits")


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
        is_plots = fullname.partition(".")[0] in PACKAGES
        return ModuleSpec(fullname, self, is_package=True) if is_plots else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


@contextlib.contextmanager
def no_plots() -> Iterator[None]:
    """Have what imports matplotlib inside get an empty one; others get the real one."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [n for n, m in sys.modules.items() if isinstance(m, _Empty)]:
            del sys.modules[name]
