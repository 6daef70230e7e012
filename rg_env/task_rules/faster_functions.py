"""Replaces functions of the library by faster ones with equal results.

A function is replaced only if its source is the text that ours was compared with. With
any other version of the library, its slower function stays.
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
    """A sequence over lines of JSON; a line is decoded each time it is read."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = list(lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index: Any) -> Any:
        return msgspec.json.decode(self._lines[index])


def dataset_init(
    fill: Callable[[Mapping[str, Any], Any, Any], None],
) -> Callable[[Any], Callable[[Any, Any], None]]:
    """Return the `make` of a `FasterFunction` for the `__init__` of a dataset.

    The faster `__init__` calls that of the base class, whichever class that is in the
    installed version, and then `fill` with the names of the library's module, the
    dataset and its config.
    """

    def make(original: Any) -> Callable[[Any, Any], None]:
        def init(dataset: Any, config: Any) -> None:
            names = original.__globals__
            dataset_class = names[original.__qualname__.partition(".")[0]]
            super(dataset_class, dataset).__init__(
                config=config, seed=config.seed, size=config.size
            )
            fill(names, dataset, config)

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
        class_name, _, name = function.name.rpartition(".")
        try:
            owner = pkgutil.resolve_name(f"{function.module}:{class_name}")
            original = getattr(owner, name)
        except (ImportError, AttributeError):
            continue
        if source_digest(original) != function.digest:
            continue
        faster = function.make(original)
        is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
        setattr(owner, name, staticmethod(faster) if is_static else faster)
        replaced.append(f"{function.module}.{function.name}")
    return replaced
