"""Replaces functions of the library by faster ones with equal results.

A function is replaced only if its source is the text that ours was compared with. Under
any other version, the library's slower function stays.
"""

from __future__ import annotations

import hashlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rg_env.task_rules.rules import FasterFunction


class JsonLines(Sequence[Any]):
    """A sequence over lines of JSON; each line is decoded when it is sampled."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = list(lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, place: Any) -> Any:
        return msgspec.json.decode(self._lines[place])


def dataset_init(
    fill: Callable[[Mapping[str, Any], Any, Any], None],
) -> Callable[[Any], Callable[[Any, Any], None]]:
    """Return a function that makes a dataset's `__init__` from the library's own.

    This `__init__` calls that of the base class, which versions of the library choose
    differently, then `fill` with the names of the library's module, the dataset and its
    config.
    """

    def make(own: Any) -> Callable[[Any, Any], None]:
        def init(dataset: Any, config: Any) -> None:
            library = own.__globals__
            own_cls = library[own.__qualname__.partition(".")[0]]
            super(own_cls, dataset).__init__(
                config=config, seed=config.seed, size=config.size
            )
            fill(library, dataset, config)

        return init

    return make


def source_digest(function: Any) -> str:
    """Return 16 hex digits that change with a function's text; "" if it has none."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def replace(functions: Iterable[FasterFunction]) -> list[str]:
    """Replace functions of the library in this process.

    Returns:
        Module and name of each replaced function, e.g. "cellpylib.evolve2d".
    """
    replaced = []
    for function in functions:
        holder, _, name = function.name.rpartition(".")
        try:
            place = pkgutil.resolve_name(f"{function.module}:{holder}")
            own = getattr(place, name)
        except (ImportError, AttributeError):
            continue
        if source_digest(own) != function.digest:
            continue
        faster = function.make(own)
        is_static = isinstance(inspect.getattr_static(place, name), staticmethod)
        setattr(place, name, staticmethod(faster) if is_static else faster)
        replaced.append(f"{function.module}.{function.name}")
    return replaced
